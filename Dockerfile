# Build: a wheel, installed into a virtual environment. Nothing of this stage but /opt/reconciler goes on.
FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/reconciler
COPY pyproject.toml README.md LICENSE ./
COPY schemas ./schemas
COPY reconciler ./reconciler
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist . \
    && /opt/reconciler/bin/pip install --no-cache-dir --quiet /dist/*.whl

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home --home-dir /home/reconciler reconciler
COPY --from=build /opt/reconciler /opt/reconciler
ENV PATH=/opt/reconciler/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
WORKDIR /home/reconciler
ENTRYPOINT ["reconciler"]
CMD ["--help"]
