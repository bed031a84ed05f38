package store

import (
	"os"
	"regexp"
	"strings"
)

// secretVars are variables of the environment whose values never stand in a
// message.
var secretVars = []string{
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID",
	"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING",
	"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD",
}

var (
	// A query holds signatures and tokens.
	queryOfURL = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?]*)\?[^\s"']*`)
	userOfURL  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'@]+@`)
	// Headers and fields that libraries print when they dump a request.
	fieldWithSecret = regexp.MustCompile(`(?i)\b(authorization|x-amz-security-token|signature|sig|secret\w*|token|access_?key\w*|awsaccesskeyid|accountkey|password|canonicalrequest\w*|stringtosign\w*)(["']?\s*[:=>]\s*["']?)[^\s"'<>&;,]+`)
	// What the library and S3 put around a message.
	frame = regexp.MustCompile(`^blob(?: \(key "[^"]*"\))? \(code=\w+\): |, HostID: [^,]*|, RequestID: ,`)
	space = regexp.MustCompile(`\s+`)
)

const maxText = 600

// Clean makes one line of a message, without what could be a secret.
func Clean(text string) string {
	for _, name := range secretVars {
		if v := os.Getenv(name); len(v) >= 4 {
			text = strings.ReplaceAll(text, v, "***")
		}
	}
	text = userOfURL.ReplaceAllString(text, "${1}***@")
	text = queryOfURL.ReplaceAllString(text, "${1}?***")
	text = fieldWithSecret.ReplaceAllString(text, "${1}${2}***")
	text = frame.ReplaceAllString(text, "")
	text = strings.TrimSpace(space.ReplaceAllString(text, " "))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
