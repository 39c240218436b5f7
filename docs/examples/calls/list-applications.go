package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// send decodes the answer of the service into target.
func send(request *http.Request, target any) {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		log.Fatal(answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(target); err != nil {
		log.Fatal(err)
	}
}

func main() {
	base := os.Getenv("BASE")
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"applications:read"}}
	request, _ := http.NewRequest("POST", base+"/oauth/token", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(os.Getenv("CLIENT_ID"), os.Getenv("CLIENT_SECRET"))
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	send(request, &tokens)

	request, _ = http.NewRequest("GET", base+"/api/v1/applications", nil)
	request.Header.Set("Authorization", "Bearer "+tokens.AccessToken)
	var applications []struct {
		Name string `json:"name"`
	}
	send(request, &applications)
	for _, application := range applications {
		fmt.Println(application.Name)
	}
}
