# The worker's image: two bundled programs on a slim Node, nothing else. The base is the Node that tests run on.
ARG NODE_VERSION=24.21.0

# Bundling does not depend on the target, so it runs on the builder's own platform, without emulation.
FROM --platform=$BUILDPLATFORM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
# Nothing here needs an install script; the bundler's binary is an ordinary dependency.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY shared ./shared
COPY worker ./worker
RUN node worker/build.ts dist

# Only copies, no commands: nothing of the target's architecture has to run while building.
FROM node:${NODE_VERSION}-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build --chown=root:root /build/dist/*.mjs ./
# The image's user `node`, by number, so that the orchestrator can see that it is not root.
USER 1000:1000
# Exec form: npm or a shell as PID 1 would swallow SIGTERM. The supervisor forwards it to the worker, which drains.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/supervisor.mjs"]
