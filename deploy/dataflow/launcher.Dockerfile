# The flex template's image: the worker's image with Google's launcher added.
#   docker build -f deploy/dataflow/launcher.Dockerfile --build-arg WORKER_IMAGE=... -t ... .
# Only the launcher is taken from the template's base image: one program that needs nothing else of
# it. Other public templates use this tag; the registry lists newer ones.
ARG WORKER_IMAGE
ARG TEMPLATE_IMAGE=gcr.io/dataflow-templates-base/python311-template-launcher-base:20240506-rc00
FROM ${TEMPLATE_IMAGE} AS template
FROM ${WORKER_IMAGE}

COPY --from=template /opt/google/dataflow/python_template_launcher /opt/google/dataflow/python_template_launcher
COPY deploy/dataflow/launch.py /template/launch.py
ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/template/launch.py

# The launcher builds a graph of one step and needs no key; the step's worker fetches it.
ENTRYPOINT ["/opt/google/dataflow/python_template_launcher"]
