// Runs the receiver over lines of base64 fields: six headers, secret, now, body.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var names = []string{
	"x-svc-signature-suite", "x-svc-signature-256", "x-svc-signature-max-age",
	"x-svc-timestamp", "x-svc-event", "x-svc-delivery",
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		headers := map[string]string{}
		for at, name := range names {
			if fields[at] != "-" {
				headers[name] = string(decoded(fields[at]))
			}
		}
		now, _ := strconv.ParseInt(string(decoded(fields[7])), 10, 64)
		fmt.Println(Verify(headers, decoded(fields[8]), string(decoded(fields[6])), now))
	}
}

func decoded(field string) []byte {
	bytes, err := base64.StdEncoding.DecodeString(field)
	if err != nil {
		panic(err)
	}
	return bytes
}
