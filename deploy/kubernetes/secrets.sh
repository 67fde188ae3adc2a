#!/usr/bin/env bash
# Create the secrets for the master key and the store's credentials from files outside the checkout,
# so that they are in no manifest and on no command line. `secrets.sh MASTER_KEY_FILE
# [CREDENTIALS_FILE]`; the latter has lines NAME=VALUE. Leave it out if the pods have access anyway.
set -euo pipefail
kubectl create secret generic quietcorpus-master-key --from-file=master-key="$1"
[ -z "${2:-}" ] || kubectl create secret generic quietcorpus-storage --from-env-file="$2"
