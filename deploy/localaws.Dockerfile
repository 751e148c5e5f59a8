# localaws alone: docker build -f deploy/localaws.Dockerfile --build-arg VERSION=v0.x.y -t localaws .
#   docker run -p 127.0.0.1:4566:4566 -v "$PWD:/work" localaws -template template.yaml
# Docker also reads localaws.Dockerfile.dockerignore, which keeps what is not source out of the build.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH VERSION
RUN cd localstack/cmd/localaws && CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /localaws .

# Certificates, a /tmp, and the user 65532. No shell: the health check is the program itself.
FROM gcr.io/distroless/static-debian13:nonroot
COPY --from=build /localaws /localaws
USER 65532:65532
WORKDIR /work
EXPOSE 4566
# Healthy when all queues and tables exist.
HEALTHCHECK --interval=2s --timeout=3s --start-period=5s --retries=5 CMD ["/localaws", "health"]
# The health check reads it too: for another port set it, and leave out -addr.
ENV LOCALAWS_ADDR=0.0.0.0:4566
ENTRYPOINT ["/localaws"]
