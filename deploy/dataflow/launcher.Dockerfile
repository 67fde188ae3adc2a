# The image of the flex template: the worker's, and Google's launcher.
#   docker build -f deploy/dataflow/launcher.Dockerfile --build-arg WORKER_IMAGE=... -t ... .
# Of the template's base only the launcher is used, one program that needs nothing of the rest. The
# tag is one that others' templates use; newer ones are in the registry's list.
ARG WORKER_IMAGE
FROM gcr.io/dataflow-templates-base/python311-template-launcher-base:20240506-rc00 AS template
FROM ${WORKER_IMAGE}

COPY --from=template /opt/google/dataflow/python_template_launcher /opt/google/dataflow/python_template_launcher
COPY deploy/dataflow/launch.py /template/launch.py
ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/template/launch.py

# The launcher builds a graph of one step and needs no key; the step's worker fetches it.
ENTRYPOINT ["/opt/google/dataflow/python_template_launcher"]
