# The image of svc. docs/guides/operations/containers.md says how it is used, and test/deploy/image.long.test.ts runs its steps.
#
#   docker build -t svc .
# The binary of uWebSockets for Node 22 and 24 needs glibc 2.38, which Debian 13 (trixie) has.
ARG NODE_VERSION=22
# By digest for a build that can be repeated: --build-arg NODE_IMAGE=node:22-trixie-slim@sha256:...
ARG NODE_IMAGE=node:${NODE_VERSION}-trixie-slim

FROM ${NODE_IMAGE} AS compile
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --include=dev --include=optional
COPY tsconfig.base.json tsconfig.json ./
COPY actors ./actors
COPY gateway ./gateway
COPY migrations ./migrations
COPY runtime ./runtime
COPY storage ./storage
RUN npx tsc -b runtime

FROM ${NODE_IMAGE} AS packages
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY runtime/trim-packages.mjs ./runtime/trim-packages.mjs
RUN npm ci --ignore-scripts --omit=dev
RUN node runtime/trim-packages.mjs --image

FROM ${NODE_IMAGE} AS image
# Of the source: the commit and its repository.
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="svc" \
  org.opencontainers.image.description="Identity and access for people and software agents" \
  org.opencontainers.image.version="0.3.0" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.source="${SOURCE}"
ENV NODE_ENV=production
# A volume that is mounted here gets its owner from the image.
ENV SVC_DATA_DIR=/data
RUN install -d -m 0700 -o 10001 -g 10001 /data
WORKDIR /app
COPY package.json LICENSE NOTICE ./
COPY docs ./docs
COPY actors/agents/workspaces/samples ./actors/agents/workspaces/samples
COPY gateway/apps/openapi/page ./gateway/apps/openapi/page
COPY gateway/pages/templates ./gateway/pages/templates
COPY gateway/apps/openapi/examples ./gateway/apps/openapi/examples
COPY migrations/*.sql ./migrations/
COPY runtime/svc.cjs runtime/thread-pool.cjs ./runtime/
COPY --from=packages /src/node_modules ./node_modules
COPY --from=compile /src/dist ./dist
# A number, so that Kubernetes can verify runAsNonRoot. The service writes nothing to its own files.
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# Alive, not ready: a container that waits for its database is not restarted.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["node", "/app/dist/runtime/main.js", "health", "--probe", "live"]
ENTRYPOINT ["node", "-r", "/app/runtime/thread-pool.cjs", "/app/dist/runtime/main.js"]
CMD ["serve"]
