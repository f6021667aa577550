# The packed program (`npm run pack`) on Node: docker build . && docker run IMAGE api
FROM node:22-bookworm-slim

# git is for exports to git repositories, with ssh for those that are reached by it.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
  && rm -rf /var/lib/apt/lists/*

COPY dist/packages/attestation-service-[0-9]*.tgz /tmp/
# Optional packages too: they are the SDKs of S3, GCS and Azure, and the Postgres of `attest up`.
RUN npm install --global --no-audit --no-fund /tmp/attestation-service-*.tgz \
  && rm -rf /tmp/*.tgz /root/.npm

USER node
WORKDIR /home/node
EXPOSE 8080 9090
ENTRYPOINT ["attest"]
CMD ["--help"]
