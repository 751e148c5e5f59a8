# localaws and sqsonce, of the folder that `make archives` writes: docker build -f deploy/tools.Dockerfile bin/archives
#   docker run -p 127.0.0.1:4566:4566 IMAGE
#   docker run -e AWS_REGION -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY -v sqsonce:/home/nonroot IMAGE sqsonce dlq ls --queue orders
# The volume keeps the audit of what sqsonce changes.
FROM gcr.io/distroless/static-debian13:nonroot
ARG TARGETARCH
COPY linux/$TARGETARCH/localaws linux/$TARGETARCH/sqsonce linux/$TARGETARCH/sqsonce-full /usr/local/bin/
USER 65532:65532
EXPOSE 4566
# No ENTRYPOINT: a command's first word names the program.
CMD ["localaws", "-addr", "0.0.0.0:4566"]
