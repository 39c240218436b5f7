/**
 * A throw-away, self-signed certificate for `api.upstream.example`, which only
 * these tests trust. Made with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes
 * -days 36500 -subj /CN=api.upstream.example -addext subjectAltName=DNS:api.upstream.example
 */
export const UPSTREAM_NAME = 'api.upstream.example'

export const UPSTREAM_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq+0Ie0qGctHyGOl1
ren762YMcSOPsb4oKS8ibeT9p+WhRANCAATzGiD7YjaEo5XZgXSdsFx+Tw3yVSQ5
/oXGAa0UinFqqVjSTICSju93MYYcYC6c/ExQNI8/f+S2QkFPYk6Vy7lL
-----END PRIVATE KEY-----
`

export const UPSTREAM_CERT = `-----BEGIN CERTIFICATE-----
MIIBtjCCAVygAwIBAgIULkOpV+rbH2/U3sSH5FFkNKXcMEMwCgYIKoZIzj0EAwIw
HzEdMBsGA1UEAwwUYXBpLnVwc3RyZWFtLmV4YW1wbGUwIBcNMjYxMTIxMDk0NDA4
WhgPMjEyNjEwMjgwOTQ0MDhaMB8xHTAbBgNVBAMMFGFwaS51cHN0cmVhbS5leGFt
cGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8xog+2I2hKOV2YF0nbBcfk8N
8lUkOf6FxgGtFIpxaqlY0kyAko7vdzGGHGAunPxMUDSPP3/ktkJBT2JOlcu5S6N0
MHIwHQYDVR0OBBYEFOt3Db/tF4SvXgh0pP412XjzQMb7MB8GA1UdIwQYMBaAFOt3
Db/tF4SvXgh0pP412XjzQMb7MA8GA1UdEwEB/wQFMAMBAf8wHwYDVR0RBBgwFoIU
YXBpLnVwc3RyZWFtLmV4YW1wbGUwCgYIKoZIzj0EAwIDSAAwRQIgGPDwAercEJZ9
xEreNw3C1kevGxg4JLyKJDjyAeyFJ9YCIQD3dl2HrRouL9h5O4aLFmQwrLKTmIHN
WhxtfJ90N/A7gQ==
-----END CERTIFICATE-----
`
