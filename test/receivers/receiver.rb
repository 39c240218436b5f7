require "openssl"

MAX_AGE_SECS = 300
SECRET_BYTES_MIN = 16
DECIMAL = /\A(0|[1-9][0-9]{0,14})\z/
VISIBLE = /\A[!-~]{1,255}\z/

# headers by lower-case name; body must be the bytes as received.
def verify(headers, body, secret, now = Time.now.to_i)
  suite, signature, timestamp, max_age, delivery, event =
    %w[signature-suite signature-256 timestamp signature-max-age delivery event]
    .map { |name| headers.fetch("x-svc-#{name}", "") }
  return false if secret.bytesize < SECRET_BYTES_MIN
  return false unless suite == "svc-webhook-v1" && signature.match?(/\Asha256=[0-9a-f]{64}\z/)
  return false unless [timestamp, max_age].all? { |text| text.match?(DECIMAL) }
  return false unless [delivery, event].all? { |text| text.match?(VISIBLE) }

  key = OpenSSL::KDF.hkdf(secret, salt: "svc:webhook-mac:v1", info: "svc-webhook-mac-v1",
                                  length: 32, hash: "SHA256")
  signed = [suite, timestamp, max_age, delivery, event, ""].join("\n").b + body.b
  mac = "sha256=" + OpenSSL::HMAC.hexdigest("SHA256", key, signed)
  return false unless OpenSSL.fixed_length_secure_compare(mac, signature)

  (0..[max_age.to_i, MAX_AGE_SECS].min).cover?(now - timestamp.to_i)
end
