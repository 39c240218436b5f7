/** Signing and verifying our tokens on node:crypto, and foreign tokens with jose, compared with bare node:crypto. */
import { sign, verify } from 'node:crypto'
import * as jose from 'jose'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { Signer } from '../../actors/oauth/signing-keys/ring.js'
import { importPublicJwk } from '../../actors/platform/jose/external-jwk.js'
import { isSignedBy, readJws } from '../../actors/platform/jose/external-jws.js'
import { verifyOwnJwt } from '../../actors/platform/jose/own-jwt.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const NOW = 1_900_000_000
/** Claims of an agent's access token. */
const claims = {
  iss: 'https://id.example',
  sub: '018f2d5e-7c1a-7b34-9a57-3e6b1c2d4f50',
  aud: 'https://api.example',
  exp: NOW + 300,
  iat: NOW,
  nbf: NOW,
  jti: '018f2d5e-7c1a-7b34-9a57-3e6b1c2d4f51',
  client_id: '018f2d5e-7c1a-7b34-9a57-3e6b1c2d4f50',
  scope: 'vault:read vault:use agents:read',
  tenant_id: '018f2d5e-7c1a-7b34-9a57-3e6b1c2d4f52',
  subject_type: 'agent',
  sid: '018f2d5e-7c1a-7b34-9a57-3e6b1c2d4f53',
}
const kid = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'

for (const algorithm of ['ES256', 'EdDSA'] as const) {
  const { publicKey, privateKey } =
    algorithm === 'ES256' ? freshKeyPair('P-256') : freshKeyPair('ed25519')
  const signer = new Signer({ kid, algorithm, privateKey })
  const token = signer.sign('at+jwt', JSON.stringify(claims))
  const [input, signature] = [
    Buffer.from(token.slice(0, token.lastIndexOf('.'))),
    Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url'),
  ]
  const digest = algorithm === 'ES256' ? 'sha256' : null
  const bareKey = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
  const barePublicKey = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  const header = { alg: algorithm, typ: 'at+jwt', kid }
  const keyOf = async () => ({ algorithm, publicKey })
  const jwk = publicKey.export({ format: 'jwk' })
  const external = async () => {
    const jws = readJws(token)
    const imported = await importPublicJwk(jwk)
    return isSignedBy(jws!, imported!)
  }
  const joseOptions = {
    typ: 'at+jwt',
    issuer: claims.iss,
    audience: claims.aud,
    currentDate: new Date(NOW * 1000),
  }
  if ((await verifyOwnJwt(token, 'at+jwt', keyOf)) === null || !(await external()))
    throw new Error('the token does not verify')
  await jose.jwtVerify(token, publicKey, joseOptions)

  await publish(
    await compare({
      name: `${algorithm}: sign a token`,
      reference: {
        name: 'node:crypto sign alone',
        run: (ms) => repeat(ms, () => sign(digest, input, bareKey)),
      },
      contenders: [
        {
          name: 'signJwt',
          run: (ms) => repeat(ms, () => signer.sign('at+jwt', JSON.stringify(claims))),
        },
        {
          name: 'jose SignJWT, 8 in flight',
          run: (ms) =>
            saturate(ms, 8, () =>
              new jose.SignJWT(claims).setProtectedHeader(header).sign(privateKey),
            ),
        },
      ],
    }),
  )
  await publish(
    await compare({
      name: `${algorithm}: verify a token`,
      reference: {
        name: 'node:crypto verify alone',
        run: (ms) => repeat(ms, () => verify(digest, input, barePublicKey, signature)),
      },
      contenders: [
        {
          name: 'verifyJwt',
          target: 0.5,
          run: (ms) => saturate(ms, 1, () => verifyOwnJwt(token, 'at+jwt', keyOf)),
        },
        { name: 'a foreign token with jose, 8 in flight', run: (ms) => saturate(ms, 8, external) },
        {
          name: 'jose jwtVerify, 8 in flight',
          run: (ms) => saturate(ms, 8, () => jose.jwtVerify(token, publicKey, joseOptions)),
        },
      ],
    }),
  )
}
