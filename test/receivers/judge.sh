# Runs the receiver over lines of base64 fields: six headers, secret, now, body.
set -euo pipefail
folder=$(dirname "$0")
. "$folder/receiver.sh"
names=(SIGNATURE_SUITE SIGNATURE_256 SIGNATURE_MAX_AGE TIMESTAMP EVENT DELIVERY)
body=$(mktemp)
trap 'rm -f "$body"' EXIT
# Whatever the variable held, with the line feeds at its end that $() would drop.
decode() { local out; out=$(printf %s "$1" | base64 -d; printf x); printf -v "$2" %s "${out%x}"; }
while IFS=$'\t' read -r -a fields; do
  for at in "${!names[@]}"; do
    unset "HTTP_X_SVC_${names[at]}"
    [[ ${fields[at]} == - ]] || decode "${fields[at]}" "HTTP_X_SVC_${names[at]}"
  done
  decode "${fields[6]}" secret
  decode "${fields[7]}" now
  printf %s "${fields[8]-}" | base64 -d > "$body"
  if verify "$secret" "$body" "$now"; then echo true; else echo false; fi
done
