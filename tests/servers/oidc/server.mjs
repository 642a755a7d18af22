// A real OAuth2 server for client credentials. Prints its port; ends when its standard input does.
import Provider from 'oidc-provider';

const [, , secret] = process.argv;
const lifetimes = { long: 3600, short: Number(process.argv[3]) };
const clients = Object.keys(lifetimes).map((client_id) => ({
  client_id,
  client_secret: secret,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  token_endpoint_auth_method: 'client_secret_post',
}));
const provider = new Provider('http://127.0.0.1', {
  clients,
  scopes: ['catalog'],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    introspection: { enabled: true, allowedPolicy: () => true },
  },
  ttl: { ClientCredentials: (ctx, token, client) => lifetimes[client.clientId] },
});
const server = provider.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
