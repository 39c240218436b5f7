package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// ErrUnavailable says that the keys of the issuer cannot be fetched: answer 503.
var ErrUnavailable = errors.New("the keys of the issuer cannot be fetched")

const (
	tokenBytesMax    = 16384
	documentBytesMax = 256 * 1024
	tolerance        = 10 * time.Second
	keysFresh        = 5 * time.Minute
	// The pause keeps tokens with invented key ids from causing load.
	keysPause = 5 * time.Second
)

// Claims of an access token (RFC 9068).
type Claims struct {
	Issuer      string          `json:"iss"`
	Subject     string          `json:"sub"`
	SubjectType string          `json:"subject_type"`
	Audience    json.RawMessage `json:"aud"`
	TenantID    string          `json:"tenant_id"`
	Scope       string          `json:"scope"`
	ID          string          `json:"jti"`
	Expires     int64           `json:"exp"`
	Issued      int64           `json:"iat"`
	Bound       json.RawMessage `json:"cnf"`
	Status      json.RawMessage `json:"status"`
}

// HasScope reports whether the token has a scope.
func (c *Claims) HasScope(scope string) bool {
	for _, one := range strings.Split(c.Scope, " ") {
		if one == scope {
			return true
		}
	}
	return false
}

type key struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

// Verifier verifies access tokens offline. Keep one: it caches the keys of the issuer.
type Verifier struct {
	Issuer, Audience, TenantID string

	mutex  sync.Mutex
	keys   map[string]key
	loaded time.Time
	tried  time.Time
}

// Verify returns the claims of a valid access token. A token that is bound to a key is refused, because no proof is seen
// here, and so is one with a status list, which this example does not read.
func (v *Verifier) Verify(ctx context.Context, token string) (*Claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > tokenBytesMax {
		return nil, errors.New("not a JWT")
	}
	var header struct {
		Algorithm string          `json:"alg"`
		Type      string          `json:"typ"`
		KeyID     string          `json:"kid"`
		Critical  json.RawMessage `json:"crit"`
	}
	var claims Claims
	if decode(parts[0], &header) != nil || decode(parts[1], &claims) != nil {
		return nil, errors.New("not a JWT")
	}
	if header.Critical != nil || !strings.EqualFold(strings.TrimPrefix(header.Type, "application/"), "at+jwt") {
		return nil, errors.New("not an access token")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, err
	}
	public, err := v.key(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	if !public.verifies(header.Algorithm, []byte(parts[0]+"."+parts[1]), signature) {
		return nil, errors.New("the signature is not valid")
	}
	now := time.Now()
	switch {
	case claims.Issuer != v.Issuer:
		return nil, errors.New("another issuer")
	case !hasAudience(claims.Audience, v.Audience):
		return nil, errors.New("another audience")
	case claims.TenantID != v.TenantID:
		return nil, errors.New("another tenant")
	case !now.Add(-tolerance).Before(time.Unix(claims.Expires, 0)):
		return nil, errors.New("expired")
	case now.Add(tolerance).Before(time.Unix(claims.Issued, 0)):
		return nil, errors.New("not valid yet")
	case claims.Subject == "" || claims.ID == "":
		return nil, errors.New("sub or jti is missing")
	case claims.Bound != nil || claims.Status != nil:
		return nil, errors.New("not supported here")
	}
	return &claims, nil
}

func decode(part string, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func hasAudience(raw json.RawMessage, audience string) bool {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil {
			return false
		}
		list = []string{one}
	}
	for _, one := range list {
		if one == audience {
			return true
		}
	}
	return false
}

func (k key) verifies(algorithm string, signed, signature []byte) bool {
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil {
		return false
	}
	switch {
	case algorithm == "ES256" && k.Type == "EC" && k.Curve == "P-256" && len(signature) == 64:
		y, err := base64.RawURLEncoding.DecodeString(k.Y)
		if err != nil {
			return false
		}
		public := ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
		if !public.Curve.IsOnCurve(public.X, public.Y) {
			return false
		}
		digest := sha256.Sum256(signed)
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		return ecdsa.Verify(&public, digest[:], r, s)
	case (algorithm == "EdDSA" || algorithm == "Ed25519") && k.Curve == "Ed25519" && len(x) == ed25519.PublicKeySize:
		return ed25519.Verify(ed25519.PublicKey(x), signed, signature)
	}
	return false
}

func (v *Verifier) key(ctx context.Context, id string) (key, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	found, known := v.keys[id]
	if known && time.Since(v.loaded) < keysFresh {
		return found, nil
	}
	if time.Since(v.tried) > keysPause {
		v.tried = time.Now()
		if keys, err := v.load(ctx); err == nil {
			v.keys, v.loaded = keys, time.Now()
		}
	}
	if v.keys == nil {
		return key{}, ErrUnavailable
	}
	if found, known = v.keys[id]; !known {
		return key{}, errors.New("an unknown key")
	}
	return found, nil
}

func (v *Verifier) load(ctx context.Context) (map[string]key, error) {
	issuer, err := url.Parse(v.Issuer)
	if err != nil {
		return nil, err
	}
	// RFC 8414 section 3.1.
	issuer.Path = "/.well-known/oauth-authorization-server" + strings.TrimSuffix(issuer.Path, "/")
	var metadata struct {
		Issuer  string `json:"issuer"`
		KeysURL string `json:"jwks_uri"`
	}
	if err := document(ctx, issuer.String(), &metadata); err != nil {
		return nil, err
	}
	if metadata.Issuer != v.Issuer {
		return nil, errors.New("the metadata is of another issuer")
	}
	var set struct {
		Keys []key `json:"keys"`
	}
	if err := document(ctx, metadata.KeysURL, &set); err != nil {
		return nil, err
	}
	keys := make(map[string]key)
	for _, one := range set.Keys {
		keys[one.ID] = one
	}
	return keys, nil
}

// One client for all documents. It follows no redirects.
var client = &http.Client{
	Timeout:       5 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func document(ctx context.Context, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", address, response.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(response.Body, documentBytesMax)).Decode(into)
}
