/**
 * What a batch of a pool and its results cost to pass between two threads: as structured clones, and as one frame each way.
 * Both sides are on this thread, so that nothing but the passing is measured.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { CertificateInput } from '../../actors/vault/ssh-certificates/compute.js'
import { packFrame, unpackFrame } from '../../runtime/kernel/threads/wire.js'
import { compare, publish, repeat } from '../harness.js'

const { port1, port2 } = new MessageChannel()

function cloned(value: unknown): unknown {
  port1.postMessage(value)
  return receiveMessageOnPort(port2)!.message
}

function framed(value: unknown): unknown {
  const frame = packFrame(value)
  port1.postMessage(frame, [frame])
  return unpackFrame(receiveMessageOnPort(port2)!.message as ArrayBuffer)
}

const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`
const work = () => ({
  challengeToken: randomBytes(180).toString('base64url'),
  nonce: '1234567',
  difficultyBits: 20,
})
const phc = `$argon2id$v=19$m=65536,t=3,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`
const certificate: CertificateInput = {
  authority: { pkcs8: randomBytes(48), caPublicKey: `ssh-ed25519 ${'A'.repeat(68)}` },
  publicKey: `ssh-ed25519 ${'A'.repeat(68)}`,
  keyId: randomUUID(),
  serial: '1234567890123456789',
  nonce: randomBytes(32),
  principals: ['deploy'],
  targetHost: 'host.example',
  validAfterSecs: 1_767_225_600,
  validBeforeSecs: 1_767_225_900,
  sourceAddresses: [],
  forceCommand: null,
}
const authorization = {
  domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: hex(20) },
  authorization: {
    from: hex(20),
    to: hex(20),
    value: '10000',
    validAfter: '0',
    validBefore: '1767225600',
    nonce: hex(32),
  },
}
const signed = { hash: hex(32), signature: hex(65) }
const image = { tag: 'image', bytes: randomBytes(20_000), mediaType: 'image/webp' }
const certified = {
  tag: 'certificate',
  certificate: 'A'.repeat(700),
  publicKey: certificate.publicKey,
  privateKey: null,
  caPublicKey: certificate.authority.caPublicKey,
}

/** A batch, and its results. */
const MESSAGES: Readonly<Record<string, readonly [calls: unknown, results: unknown]>> = {
  'proof of work, one call': [[['work', work()]], [[true, 'valid']]],
  'proof of work, 64 calls': [
    Array.from({ length: 64 }, () => ['work', work()]),
    Array.from({ length: 64 }, () => [true, 'valid']),
  ],
  'a password': [[['verify', { password: randomBytes(12), phc }]], [[true, true]]],
  'an SSH certificate': [[['certificate', certificate]], [[true, certified]]],
  'a payment of a wallet': [
    [['payment', { key: randomBytes(32), ...authorization }]],
    [[true, signed]],
  ],
  'an image of 500 KB': [
    [['encode', { kind: 'logo', bytes: randomBytes(500_000) }]],
    [[true, { ...image, width: 512, height: 512 }]],
  ],
}

for (const [name, [calls, results]] of Object.entries(MESSAGES)) {
  const passed = (pass: (value: unknown) => unknown) => (ms: number) =>
    repeat(ms, () => [pass(calls), pass(results)], 10)
  await publish(
    await compare({
      name,
      reference: { name: 'structured clones', run: passed(cloned) },
      contenders: [{ name: 'frames', run: passed(framed) }],
    }),
  )
}
port1.close()
