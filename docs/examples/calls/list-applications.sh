# BASE, CLIENT_ID and CLIENT_SECRET are in the environment. The application has the scope applications:read.
TOKEN=$(curl -fsS "$BASE/oauth/token" -u "$CLIENT_ID:$CLIENT_SECRET" \
  -d grant_type=client_credentials -d scope=applications:read | jq -r .access_token)
curl -fsS "$BASE/api/v1/applications" -H "Authorization: Bearer $TOKEN" | jq -r '.[].name'
