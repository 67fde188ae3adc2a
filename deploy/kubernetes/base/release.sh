#!/usr/bin/env bash
# Make the release of one interval: `release.sh OPTIONS`, of `quietcorpus release`. In the spec, INTERVAL
# becomes the date for which the job was scheduled, or what follows the prefix in the name of a job
# that was made by hand. All tries of a job have its name, and so they make the same release.
set -euo pipefail
python -c '
import sys
from ruamel.yaml import YAML
spec = YAML(typ="safe").load(sys.stdin)
for key in ("release", "output"):
    if "INTERVAL" not in str(spec.get(key)):
        print(f"release.sh: {key}: lacks INTERVAL: intervals would share a release", file=sys.stderr)
        sys.exit(2)
' < /spec/spec.yaml
interval="${JOB_NAME#quietcorpus-release-}"
# The CronJob's controller names a job after the minutes since 1970.
[[ ! "$interval" =~ ^[0-9]{8}$ ]] || interval="$(date -u -d "@$((interval * 60))" +%Y-%m-%d)"
sed "s/INTERVAL/$interval/g" /spec/spec.yaml > "$TMPDIR/spec.yaml"
exec quietcorpus release "$TMPDIR/spec.yaml" --if-exists=ok "$@"
