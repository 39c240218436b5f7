package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxAgeSecs     = 300
	secretBytesMin = 16
)

var (
	decimal = regexp.MustCompile(`\A(0|[1-9][0-9]{0,14})\z`)
	visible = regexp.MustCompile(`\A[!-~]{1,255}\z`)
	hexMAC  = regexp.MustCompile(`\Asha256=[0-9a-f]{64}\z`)
)

// Verify takes headers by lower-case name and the body byte for byte as received.
func Verify(headers map[string]string, body []byte, secret string, nowSecs int64) bool {
	suite, signature := headers["x-svc-signature-suite"], headers["x-svc-signature-256"]
	timestamp, maxAge := headers["x-svc-timestamp"], headers["x-svc-signature-max-age"]
	delivery, event := headers["x-svc-delivery"], headers["x-svc-event"]
	if len(secret) < secretBytesMin {
		return false
	}
	if suite != "svc-webhook-v1" || !hexMAC.MatchString(signature) {
		return false
	}
	if !decimal.MatchString(timestamp) || !decimal.MatchString(maxAge) {
		return false
	}
	if !visible.MatchString(delivery) || !visible.MatchString(event) {
		return false
	}

	// HKDF-SHA256 (RFC 5869): one block is all that 32 bytes need.
	extracted := mac([]byte("svc:webhook-mac:v1"), []byte(secret))
	key := mac(extracted, []byte("svc-webhook-mac-v1\x01"))
	signed := strings.Join([]string{suite, timestamp, maxAge, delivery, event, ""}, "\n")
	sent, _ := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if !hmac.Equal(mac(key, []byte(signed), body), sent) {
		return false
	}

	then, _ := strconv.ParseInt(timestamp, 10, 64)
	limit, _ := strconv.ParseInt(maxAge, 10, 64)
	if limit > maxAgeSecs {
		limit = maxAgeSecs
	}
	age := nowSecs - then
	return age >= 0 && age <= limit
}

func mac(key []byte, parts ...[]byte) []byte {
	hash := hmac.New(sha256.New, key)
	for _, part := range parts {
		hash.Write(part)
	}
	return hash.Sum(nil)
}
