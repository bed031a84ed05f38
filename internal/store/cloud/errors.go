//go:build !nocloud

package cloud

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"tracelake/internal/store"
)

// error makes an error of a library one of package store.
func (b *bucket) error(key string, err error) *store.Error {
	return store.NewError(b.URL(key), kindOf(err), err)
}

// codes are the names of errors that the status does not tell.
var codes = map[string]store.Kind{
	"NoSuchBucket": store.NoBucket, "ContainerNotFound": store.NoBucket, "InvalidBucketName": store.NoBucket, "ContainerBeingDeleted": store.NoBucket,
	"NoSuchKey": store.NotFound, "BlobNotFound": store.NotFound,
	"ExpiredToken": store.Denied, "InvalidToken": store.Denied, "TokenRefreshRequired": store.Denied, "InvalidAccessKeyId": store.Denied, "XAdminUserNotFound": store.Denied,
	"SlowDown": store.Throttled, "ServerBusy": store.Throttled, "RequestLimitExceeded": store.Throttled,
	"ConditionalRequestConflict": store.Broken, // somebody else is writing at this moment
}

func kindOf(err error) store.Kind {
	if errors.Is(err, context.Canceled) {
		return store.Broken // by a time limit: do tells who cancelled
	}
	if errors.Is(err, errFinal) {
		return store.Other
	}
	status, code := statusOf(err)
	if k, ok := codes[code]; ok {
		return k
	}
	switch {
	case errors.Is(err, storage.ErrBucketNotExist):
		return store.NoBucket
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return store.Denied
	case status == http.StatusNotFound:
		return store.NotFound
	case status == http.StatusPreconditionFailed, code == "BlobAlreadyExists":
		return store.Exists
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return store.Throttled
	case status >= 500, status == http.StatusRequestTimeout:
		return store.Broken
	case status >= 300:
		return store.Other
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return store.NotFound
	case gcerrors.FailedPrecondition:
		return store.Exists
	case gcerrors.PermissionDenied:
		return store.Denied
	case gcerrors.InvalidArgument:
		return store.Other
	}
	if k := opening(err); k != store.Other {
		return k
	}
	return store.Broken
}

// statusOf returns the HTTP status and the name of an error.
func statusOf(err error) (status int, code string) {
	var named interface {
		error
		ErrorCode() string
	}
	var answered interface {
		error
		HTTPStatusCode() int
	}
	var az *azcore.ResponseError
	var gs *googleapi.Error
	switch {
	case errors.As(err, &az):
		return az.StatusCode, az.ErrorCode
	case errors.As(err, &gs):
		return gs.Code, ""
	case errors.As(err, &named):
		code = named.ErrorCode()
	}
	if errors.As(err, &answered) {
		status = answered.HTTPStatusCode()
	}
	return status, code
}

// opening tells missing credentials from other errors before any request.
func opening(err error) store.Kind {
	text := strings.ToLower(err.Error())
	for _, s := range []string{"credential", "get identity", "no identity"} {
		if strings.Contains(text, s) {
			return store.Denied
		}
	}
	return store.Other
}
