# syntax=docker/dockerfile:1

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src

COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=dev
ARG COMMIT=unknown
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath \
      -ldflags "-s -w \
        -X github.com/justfortytwo/backfill/internal/version.Version=$VERSION \
        -X github.com/justfortytwo/backfill/internal/version.Commit=$COMMIT" \
      -o /out/ ./cmd/backfill ./cmd/worker

# Static: no shell and no libc, but CA certificates and the time zones the
# nightly schedule needs.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/backfill /out/worker /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/worker"]
