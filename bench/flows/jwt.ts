/** Signing and verifying access tokens: our code compared with bare node:crypto and with jose. */
import { sign, verify } from 'node:crypto'
import * as jose from 'jose'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { type SigningKey, signJwt, verifyJwt } from '../../actors/platform/jose/jwt.js'
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
  const key: SigningKey = { kid, algorithm, privateKey }
  const token = signJwt(key, 'at+jwt', claims)
  const [input, signature] = [
    Buffer.from(token.slice(0, token.lastIndexOf('.'))),
    Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url'),
  ]
  const digest = algorithm === 'ES256' ? 'sha256' : null
  const bareKey = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
  const barePublicKey = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  const header = { alg: algorithm, typ: 'at+jwt', kid }
  const options = {
    keyOf: () => ({ algorithm, publicKey }),
    typ: 'at+jwt',
    nowSecs: NOW,
    leewaySecs: 5,
    issuer: claims.iss,
    audience: claims.aud,
  }
  const joseOptions = {
    typ: 'at+jwt',
    issuer: claims.iss,
    audience: claims.aud,
    currentDate: new Date(NOW * 1000),
  }
  if (verifyJwt(token, options).tag !== 'verified') throw new Error('the token does not verify')
  await jose.jwtVerify(token, publicKey, joseOptions)

  await publish(
    await compare({
      name: `${algorithm}: sign a token`,
      reference: {
        name: 'node:crypto sign alone',
        run: (ms) => repeat(ms, () => sign(digest, input, bareKey)),
      },
      contenders: [
        { name: 'signJwt', run: (ms) => repeat(ms, () => signJwt(key, 'at+jwt', claims)) },
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
          run: (ms) => repeat(ms, () => verifyJwt(token, options)),
        },
        {
          name: 'jose jwtVerify, 8 in flight',
          run: (ms) => saturate(ms, 8, () => jose.jwtVerify(token, publicKey, joseOptions)),
        },
      ],
    }),
  )
}
