# Build: a wheel, installed into a virtual environment without pip, bytecode included. Nothing of this stage but
# /opt/reconciler goes on. Pin the base by digest where your registry policy asks for it; the tag is what was tried.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv --without-pip /opt/reconciler
COPY pyproject.toml README.md LICENSE ./
COPY schemas ./schemas
COPY reconciler ./reconciler
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist . \
    && pip --python /opt/reconciler/bin/python install --no-cache-dir --compile --quiet /dist/*.whl

# Run: Python, the program, and a user who owns neither. No compiler, no pip, no Java: steps that move table data are
# shown as blocked here (docs/kubernetes.md).
FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="reconciler" \
      org.opencontainers.image.description="Keeps Lance namespaces and tables in data catalogs equal to YAML manifests" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --no-log-init --uid 10001 --user-group --create-home reconciler \
    && python -m pip uninstall --yes --quiet --root-user-action ignore pip
COPY --from=build /opt/reconciler /opt/reconciler
# A crash in native code leaves a stack on stderr.
ENV PATH=/opt/reconciler/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1
USER 10001
WORKDIR /home/reconciler
ENTRYPOINT ["reconciler"]
CMD ["--help"]
