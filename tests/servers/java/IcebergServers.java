import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.rest.RESTCatalogServer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Many of Apache Iceberg's REST servers in one process, each with an empty catalog of its own: every test gets one.
 *
 * <p>A line "new" on standard input starts one and prints its port ("new files": one that writes its metadata to the
 * tables' locations); "stop PORT" ends it. The end of the input ends all.
 * The server's constructor is not public, hence the reflection.
 */
public class IcebergServers {
  public static void main(String[] args) throws Exception {
    Map<String, RESTCatalogServer> servers = new HashMap<>();
    Constructor<RESTCatalogServer> make = RESTCatalogServer.class.getDeclaredConstructor(Map.class);
    make.setAccessible(true);
    Field http = RESTCatalogServer.class.getDeclaredField("httpServer");
    http.setAccessible(true);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.trim().split(" ");
      if (words[0].equals("stop")) {
        servers.remove(words[1]).stop();
        System.out.println("stopped");
      } else {
        RESTCatalogServer server = make.newInstance(settings(words.length > 1));
        server.start(false);
        ServerConnector connector = (ServerConnector) ((Server) http.get(server)).getConnectors()[0];
        String port = Integer.toString(connector.getLocalPort());
        servers.put(port, server);
        System.out.println(port);
      }
      System.out.flush();
    }
    System.exit(0);
  }

  /**
   * One connection, because each has a database of its own in memory; strict, because otherwise a table makes its
   * namespace; file contents in memory, so that any location is taken, unless they are to be real files.
   */
  private static Map<String, String> settings(boolean files) {
    Map<String, String> settings = new HashMap<>();
    settings.put("rest.port", "0");
    settings.put("clients", "1");
    settings.put("jdbc.strict-mode", "true");
    settings.put("warehouse", files ? "file:///nowhere" : "s3://wh");
    if (!files) {
      settings.put("io-impl", "org.apache.iceberg.inmemory.InMemoryFileIO");
    }
    return settings;
  }
}
