# The image of every role: `oarlock ingest`, `oarlock worker`, and the commands for people.
# Its steps are in image/steps.sh, which tests/image follows without a container engine.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY image/steps.sh image/requirements.lock image/
COPY image/old_names image/old_names
COPY pyproject.toml README.md LICENSE ./
# src/oarlock holds a link to each of the other folders.
COPY broker broker
COPY chaos chaos
COPY testing testing
COPY cli cli
COPY cluster cluster
COPY controllers controllers
COPY keyed_queue keyed_queue
COPY sandbox sandbox
COPY sdk sdk
COPY src src
COPY workers workers
RUN sh image/steps.sh wheel /src /dist
RUN sh image/steps.sh install /opt/oarlock /dist image/requirements.lock
RUN sh image/steps.sh old-names /opt/oarlock image/old_names

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="oarlock" \
      org.opencontainers.image.description="Kubernetes workload controllers run by a fleet" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY image/steps.sh /usr/local/share/oarlock/
RUN sh /usr/local/share/oarlock/steps.sh system
COPY --from=build /opt/oarlock /opt/oarlock
# Nothing is written below /: no bytecode, and /tmp is an emptyDir or a tmpfs where the root is read-only.
ENV PATH=/opt/oarlock/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
WORKDIR /tmp
USER 65532:65532
STOPSIGNAL SIGTERM
# tini is process 1: it reaps what loses its parent and hands signals on.
ENTRYPOINT ["/usr/bin/tini", "--", "oarlock"]
CMD ["--help"]
