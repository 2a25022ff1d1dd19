# askback alone: no shell, no other program, no user but its own.
#
#   docker build -t askback .
#   docker run -p 127.0.0.1:8080:8080 -v askback:/data askback

FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH VERSION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.release=$VERSION" -o /image/usr/local/bin/askback ./cmd/askback
# All that there is beside it: what Go needs for TLS, and two folders to write to.
RUN mkdir -p /image/etc/ssl/certs /image/tmp /image/data \
    && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
    && chmod 1777 /image/tmp \
    && chown 65532:65532 /image/data

FROM scratch
COPY --from=build /image/ /
# A number, so that Kubernetes can tell that it is not root. A new volume at /data
# belongs to it, since the folder does.
USER 65532:65532
ENV PATH=/usr/local/bin HOME=/data ASKBACK_ADDR=0.0.0.0:8080
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s --start-interval=1s CMD ["askback", "healthcheck"]
ENTRYPOINT ["askback"]
CMD ["serve"]
