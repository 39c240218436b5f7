/**
 * A minimal resource server. It accepts access tokens for its audience and verifies them with the
 * published keys (RFC 9068).
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'

type Trusts = {
  readonly issuer: string
  /** The audience of this API. Tokens for other audiences are refused. */
  readonly audience: string
  readonly tenantId: string
  /** The service's key set. A long-running server fetches it from time to time. */
  readonly keys: JSONWebKeySet
}

interface TourApi {
  readonly baseUrl: string
  stop(): Promise<void>
}

/** Listens on a free port of this machine. GET / greets the token's user by `sub`. */
export async function startTourApi(trusts: Trusts): Promise<TourApi> {
  const server = createServer((request, response) => {
    void answerTo(request.headers.authorization, trusts).then(({ status, challenge, body }) => {
      const headers = challenge === undefined ? {} : { 'www-authenticate': challenge }
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify(body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

type Reply = {
  readonly status: number
  readonly challenge?: string
  readonly body: Readonly<Record<string, unknown>>
}

async function answerTo(authorization: string | undefined, trusts: Trusts): Promise<Reply> {
  const [, token] = /^Bearer ([\w.-]+)$/i.exec(authorization ?? '') ?? []
  if (token === undefined) return { status: 401, challenge: 'Bearer', body: { error: 'no token' } }
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(trusts.keys), {
      issuer: trusts.issuer,
      audience: trusts.audience,
      typ: 'at+jwt',
      algorithms: ['ES256', 'EdDSA'],
      requiredClaims: ['sub', 'exp', 'client_id', 'scope'],
    })
    if (payload['tenant_id'] !== trusts.tenantId) throw new Error('another tenant')
    if (payload['cnf'] !== undefined) throw new Error('a bound token needs its proof')
    const { sub, scope } = payload
    return { status: 200, body: { hello: sub, you_may: scope } }
  } catch {
    const challenge = 'Bearer error="invalid_token"'
    return { status: 401, challenge, body: { error: 'invalid_token' } }
  }
}
