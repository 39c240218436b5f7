// An API in Go that accepts access tokens of svc, with the standard library only.
//
//	ISSUER=http://localhost:8080 AUDIENCE=urn:svc:application:... TENANT_ID=... PORT=3000 go run .
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

const scope = "applications:read"

func main() {
	verifier := &Verifier{
		Issuer:   os.Getenv("ISSUER"),
		Audience: os.Getenv("AUDIENCE"),
		TenantID: os.Getenv("TENANT_ID"),
	}
	http.HandleFunc("/me", func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			refuse(w, http.StatusUnauthorized, "Bearer")
			return
		}
		claims, err := verifier.Verify(r.Context(), token)
		switch {
		case errors.Is(err, ErrUnavailable):
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case err != nil:
			refuse(w, http.StatusUnauthorized, `Bearer error="invalid_token"`)
		case !claims.HasScope(scope):
			refuse(w, http.StatusForbidden, fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, scope))
		default:
			w.Header().Set("Content-Type", "application/json")
			// The key of a user is the tenant and the subject, never an email address.
			json.NewEncoder(w).Encode(map[string]string{"subject": claims.Subject, "subject_type": claims.SubjectType})
		}
	})
	address := "127.0.0.1:" + os.Getenv("PORT")
	fmt.Printf("ready: http://%s\n", address)
	log.Fatal(http.ListenAndServe(address, nil))
}

func refuse(w http.ResponseWriter, status int, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	w.WriteHeader(status)
}
