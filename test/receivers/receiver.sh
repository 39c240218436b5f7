# verify SECRET BODY_FILE [NOW]: the headers as CGI names them, the body byte for byte in a file.
verify() {
  local LC_ALL=C secret=$1 body=$2 now=${3:-$(date +%s)} salt=svc:webhook-mac:v1
  local suite=${HTTP_X_SVC_SIGNATURE_SUITE-} signature=${HTTP_X_SVC_SIGNATURE_256-}
  local timestamp=${HTTP_X_SVC_TIMESTAMP-} max_age=${HTTP_X_SVC_SIGNATURE_MAX_AGE-}
  local delivery=${HTTP_X_SVC_DELIVERY-} event=${HTTP_X_SVC_EVENT-}
  local decimal='^(0|[1-9][0-9]{0,14})$' visible='^[!-~]{1,255}$' hex='^sha256=[0-9a-f]{64}$'
  ((${#secret} >= 16)) || return 1
  [[ $suite == svc-webhook-v1 && $signature =~ $hex ]] || return 1
  [[ $timestamp =~ $decimal && $max_age =~ $decimal ]] || return 1
  [[ $delivery =~ $visible && $event =~ $visible ]] || return 1

  local material key mac blind
  material=$(printf %s "$secret" | od -An -v -tx1 | tr -d ' \n')
  key=$(openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt "hexkey:$material" \
    -kdfopt "salt:$salt" -kdfopt info:svc-webhook-mac-v1 HKDF | tr -d ':\n')
  mac=$({ printf '%s\n' "$suite" "$timestamp" "$max_age" "$delivery" "$event"; cat "$body"; } |
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -r | cut -d' ' -f1)
  # Compared under a random key, so that the time taken tells nothing.
  blind=$(openssl rand -hex 32)
  [[ $(printf %s "sha256=$mac" | openssl dgst -sha256 -hmac "$blind") == \
    "$(printf %s "$signature" | openssl dgst -sha256 -hmac "$blind")" ]] || return 1

  local age=$((now - timestamp))
  ((age >= 0 && age <= max_age && age <= 300))
}
