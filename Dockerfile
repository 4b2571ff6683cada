ARG PYTHON=3.13
ARG BASE=python:${PYTHON}-slim-bookworm

FROM ${BASE} AS build
ARG PYTHON
RUN python -m venv /opt/mergeyard
COPY requirements/run.txt /tmp/run.txt
RUN /opt/mergeyard/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement /tmp/run.txt \
    && /opt/mergeyard/bin/pip uninstall --yes pip
# Copied, not built: the build tools would be the only packages without a hash.
COPY src/mergeyard /opt/mergeyard/lib/python${PYTHON}/site-packages/mergeyard
COPY --chmod=755 deploy/docker/mergeyard /opt/mergeyard/bin/mergeyard
# The root file system can be read-only at run time, so bytecode is written now.
RUN /opt/mergeyard/bin/python -m compileall -q /opt/mergeyard/lib

FROM ${BASE}
# Debian drops old versions from its mirrors, so git is not pinned: a pinned one would stop building.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 mergeyard \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/mergeyard --shell /usr/sbin/nologin mergeyard \
    && install --directory --owner 10001 --group 10001 --mode 700 /var/lib/mergeyard \
    && install --directory --owner 10001 --group 10001 /srv/git
COPY --from=build /opt/mergeyard /opt/mergeyard

LABEL org.opencontainers.image.title="Mergeyard" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.source="https://git.example.com/mergeyard/mergeyard" \
    org.opencontainers.image.documentation="https://docs.example.com/mergeyard"
ENV PATH=/opt/mergeyard/bin:$PATH \
    MERGEYARD_HOST=0.0.0.0 \
    MERGEYARD_PORT=8080 \
    MERGEYARD_DATA_DIR=/var/lib/mergeyard

# One folder is enough: the data, and mergeyard.toml unless MERGEYARD_CONFIG names another file.
WORKDIR /var/lib/mergeyard
USER 10001:10001
VOLUME ["/var/lib/mergeyard"]
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.build_opener(web.ProxyHandler({})).open(f'http://127.0.0.1:{os.environ[\"MERGEYARD_PORT\"]}/healthz', timeout=4)"]
ENTRYPOINT ["mergeyard"]
CMD ["serve"]
