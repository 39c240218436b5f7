/** An issuer of tokens of workloads: its metadata and keys on loopback, and tokens that it signs. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { type DocumentServer, documentServer } from './document-server.js'

export type TokenSource = {
  readonly issuer: string
  readonly host: DocumentServer
  /** A token of five minutes for `audience`. Members of `more` replace its claims, and undefined removes them. */
  sign(more: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>
  /** Replaces the key, and serves the new one. */
  rotate(): Promise<void>
  /** The key set as it is served. */
  keys(): { readonly keys: readonly object[] }
}

export async function tokenSource(
  audience: string,
  { alg = 'RS256', path = '', use = 'sig' }: { alg?: string; path?: string; use?: string } = {},
): Promise<TokenSource> {
  const host = await documentServer()
  const issuer = host.origin + path
  let count = 0
  let pair = await generateKeyPair(alg)
  let keys: readonly object[] = []
  const serve = async () => {
    count += 1
    const { alg: _, ...jwk } = await exportJWK(pair.publicKey)
    keys = [{ ...jwk, kid: `key-${count}`, use }]
    host.serve(`${path}/keys`, { body: JSON.stringify({ keys }) })
  }
  await serve()
  host.serve(`${path}/.well-known/openid-configuration`, {
    body: JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }),
  })
  return {
    issuer,
    host,
    keys: () => ({ keys }),
    async rotate() {
      pair = await generateKeyPair(alg)
      await serve()
    },
    sign(more, header = {}) {
      const nowSecs = Math.floor(Date.now() / 1000)
      const claims = { iss: issuer, aud: audience, iat: nowSecs, exp: nowSecs + 300, ...more }
      return new SignJWT(claims)
        .setProtectedHeader({ alg, kid: `key-${count}`, ...header })
        .sign(pair.privateKey)
    },
  }
}
