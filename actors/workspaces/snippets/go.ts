/** Start snippet for Go: net/http with go-oidc and golang.org/x/oauth2. */
export const GO = `// go get github.com/coreos/go-oidc/v3 golang.org/x/oauth2; load the env block, then: go run .
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

var issuer = os.Getenv("SVC_ISSUER")

// A client whose requests carry a token for this application itself (client_credentials).
func serviceClient(ctx context.Context) *http.Client {
	config := clientcredentials.Config{
		ClientID:     os.Getenv("SVC_CLIENT_ID"),
		ClientSecret: os.Getenv("SVC_CLIENT_SECRET"),
		TokenURL:     issuer + "/oauth/token",
		AuthStyle:    oauth2.AuthStyleInHeader,
	}
	return config.Client(ctx)
}

var verifier = oidc.NewVerifier(
	issuer,
	oidc.NewRemoteKeySet(context.Background(), issuer+"/.well-known/jwks.json"),
	&oidc.Config{
		ClientID:             os.Getenv("SVC_AUDIENCE"),
		SupportedSigningAlgs: []string{oidc.ES256, oidc.EdDSA},
	},
)

type claims struct {
	Subject string \`json:"sub"\`
	Scope   string \`json:"scope"\`
	Tenant  string \`json:"tenant_id"\`
}

// The claims of a bearer token meant for this application.
func verifyBearer(request *http.Request) (*claims, error) {
	raw, found := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !found {
		return nil, errors.New("no bearer token")
	}
	token, err := verifier.Verify(request.Context(), raw)
	if err != nil {
		return nil, err
	}
	var out claims
	if err := token.Claims(&out); err != nil {
		return nil, err
	}
	if out.Tenant != os.Getenv("SVC_TENANT_ID") {
		return nil, errors.New("another tenant")
	}
	return &out, nil
}

func main() {
	http.HandleFunc("/me", func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		caller, err := verifyBearer(request)
		if err != nil {
			response.WriteHeader(http.StatusUnauthorized)
			json.NewEncoder(response).Encode(map[string]string{"error": "unauthorized"})
			return
		}
		json.NewEncoder(response).Encode(caller)
	})
	log.Fatal(http.ListenAndServe(":3000", nil))
}
`
