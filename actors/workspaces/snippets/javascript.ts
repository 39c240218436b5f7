/** Start snippets for Node frameworks: `npm install jose`, then the text as it stands. */

/** How the samples read their environment; they are text, so nothing is read here. */
const env = (name: string) => ['process', 'env', name].join('.')

/** What every sample shares: a token of the application's own, and the check of a caller's. */
const SHARED = `import { createRemoteJWKSet, jwtVerify } from 'jose'

const issuer = ${env('SVC_ISSUER')}
const keys = createRemoteJWKSet(new URL(issuer + '/.well-known/jwks.json'))

/** A token for this application itself (client_credentials). */
export async function serviceToken() {
  const client = [${env('SVC_CLIENT_ID')}, ${env('SVC_CLIENT_SECRET')}]
  const basic = Buffer.from(client.map(encodeURIComponent).join(':')).toString('base64')
  const response = await fetch(issuer + '/oauth/token', {
    method: 'POST',
    headers: { authorization: 'Basic ' + basic },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  if (!response.ok) throw new Error('token request: ' + response.status)
  return (await response.json()).access_token
}

/** The claims of a bearer token meant for this application. Throws for any other. */
export async function verifyBearer(authorization) {
  const [, token = ''] = /^Bearer (\\S+)$/i.exec(authorization ?? '') ?? []
  const { payload } = await jwtVerify(token, keys, {
    issuer,
    audience: ${env('SVC_AUDIENCE')},
    typ: 'at+jwt',
    algorithms: ['ES256', 'EdDSA'],
    requiredClaims: ['sub', 'exp', 'nbf', 'tenant_id'],
  })
  if (payload.tenant_id !== ${env('SVC_TENANT_ID')}) throw new Error('another tenant')
  return payload
}
`

export const NEXTJS = `// npm install jose; put the env block into .env.local
// lib/svc.js
${SHARED}
// app/api/me/route.js
import { verifyBearer } from '../../../lib/svc'

export async function GET(request) {
  try {
    const claims = await verifyBearer(request.headers.get('authorization'))
    return Response.json({ sub: claims.sub, scope: claims.scope })
  } catch {
    return Response.json({ error: 'unauthorized' }, { status: 401 })
  }
}
`

export const EXPRESS = `// npm install express jose; node --env-file=.env.local server.mjs
// svc.mjs
${SHARED}
// server.mjs
import express from 'express'
import { verifyBearer } from './svc.mjs'

const app = express()

app.get('/me', async (request, response) => {
  try {
    const claims = await verifyBearer(request.get('authorization'))
    response.json({ sub: claims.sub, scope: claims.scope })
  } catch {
    response.status(401).json({ error: 'unauthorized' })
  }
})

app.listen(3000)
`

export const FASTIFY = `// npm install fastify jose; node --env-file=.env.local server.mjs
// svc.mjs
${SHARED}
// server.mjs
import Fastify from 'fastify'
import { verifyBearer } from './svc.mjs'

const app = Fastify()

app.addHook('preHandler', async (request, reply) => {
  try {
    request.claims = await verifyBearer(request.headers.authorization)
  } catch {
    return reply.code(401).send({ error: 'unauthorized' })
  }
})

app.get('/me', async ({ claims }) => ({ sub: claims.sub, scope: claims.scope }))

await app.listen({ port: 3000 })
`

export const REMIX = `// npm install jose; put the env block into .env
// app/svc.server.js
${SHARED}
// app/routes/api.me.jsx
import { verifyBearer } from '../svc.server'

export async function loader({ request }) {
  try {
    const claims = await verifyBearer(request.headers.get('authorization'))
    return Response.json({ sub: claims.sub, scope: claims.scope })
  } catch {
    return Response.json({ error: 'unauthorized' }, { status: 401 })
  }
}
`

/** SvelteKit hands the environment to server code through a module of its own. */
export const SVELTEKIT = `// npm install jose; put the env block into .env
// src/lib/server/svc.js
import { env } from '$env/dynamic/private'
${SHARED.replaceAll(env(''), 'env.')}
// src/routes/api/me/+server.js
import { json } from '@sveltejs/kit'
import { verifyBearer } from '$lib/server/svc'

export async function GET({ request }) {
  try {
    const claims = await verifyBearer(request.headers.get('authorization'))
    return json({ sub: claims.sub, scope: claims.scope })
  } catch {
    return json({ error: 'unauthorized' }, { status: 401 })
  }
}
`

/** Nothing but Node: fetch and node:crypto. It checks the very token it asked for. */
export const GENERIC = `// start.mjs, Node 20 or newer: node --env-file=.env.local start.mjs
import { createPublicKey, verify } from 'node:crypto'

const issuer = ${env('SVC_ISSUER')}

// A token for this application itself (client_credentials).
const client = [${env('SVC_CLIENT_ID')}, ${env('SVC_CLIENT_SECRET')}]
const basic = Buffer.from(client.map(encodeURIComponent).join(':')).toString('base64')
const response = await fetch(issuer + '/oauth/token', {
  method: 'POST',
  headers: { authorization: 'Basic ' + basic },
  body: new URLSearchParams({ grant_type: 'client_credentials' }),
})
if (!response.ok) throw new Error('token request: ' + response.status)
const token = (await response.json()).access_token

// What an API does with a token it is sent: key by kid, signature, then the claims.
const [header, payload, signature] = token.split('.')
const decoded = (part) => JSON.parse(Buffer.from(part, 'base64url').toString())
const { kid, alg, typ } = decoded(header)
const { keys } = await (await fetch(issuer + '/.well-known/jwks.json')).json()
const jwk = keys.find((key) => key.kid === kid && key.alg === alg)
if (jwk === undefined || typ !== 'at+jwt') throw new Error('not an access token of this issuer')
const key = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }
const signed = Buffer.from(header + '.' + payload)
const hash = alg === 'ES256' ? 'sha256' : null
if (!verify(hash, signed, key, Buffer.from(signature, 'base64url'))) throw new Error('bad signature')
const claims = decoded(payload)
const now = Date.now() / 1000
if (claims.iss !== issuer) throw new Error('another issuer')
if (![claims.aud].flat().includes(${env('SVC_AUDIENCE')})) throw new Error('another audience')
if (!(claims.nbf <= now && now < claims.exp)) throw new Error('not valid now')
if (claims.tenant_id !== ${env('SVC_TENANT_ID')}) throw new Error('another tenant')
process.stdout.write(JSON.stringify(claims, null, 2) + '\\n')
`
