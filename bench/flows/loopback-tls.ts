/**
 * A self-signed certificate for localhost, trusted by these benches only. Made by: openssl req
 * -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost
 * -addext subjectAltName=DNS:localhost
 */
export const LOCALHOST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOGQk8u7jh7jleRhe
ONyFcsw26P+mCPrGPLwEIcq/9BmhRANCAATbODRtw3K0UkRkmLPr43cnK435+JJo
Mj3wysHIUAPtkxRf1Ad35bHODtpxGEmZ0HqgCcqUGVezU3QjrAJxF4lX
-----END PRIVATE KEY-----
`

export const LOCALHOST_CERT = `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUK5Zd7noQXDSnifLwHY84U2jTF/kwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTExMDA0NFoYDzIxMjYxMDI4
MTEwMDQ0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATbODRtw3K0UkRkmLPr43cnK435+JJoMj3wysHIUAPtkxRf1Ad35bHO
DtpxGEmZ0HqgCcqUGVezU3QjrAJxF4lXo2kwZzAdBgNVHQ4EFgQULtBVPLgHP+qg
+wyH3v79p+EKQbUwHwYDVR0jBBgwFoAULtBVPLgHP+qg+wyH3v79p+EKQbUwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIgBqSPXE8cO9+04GIs1bAXfn/2TrP6EhIT5zupP+LQYGYCIQCVCRGezI0b
SV6Mz9elPrSBzz0722Y7LoV9as9X1bPuxg==
-----END CERTIFICATE-----
`
