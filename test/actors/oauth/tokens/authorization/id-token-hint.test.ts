/** A hint that cannot be verified now is neither valid nor invalid. */
import test from 'ava'
import { DependencyUnavailable } from '../../../../../runtime/kernel/dependency.js'
import { readIdTokenHint } from '../../../../../actors/oauth/tokens/authorization/id-token-hint.js'

const ISSUER = 'https://auth.svc.example'
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const HINT = [
  part({ alg: 'ES256', typ: 'JWT', kid: 'k' }),
  part({ iss: ISSUER, sub: 's', aud: 'a', sid: 'i', tenant_id: 't' }),
  Buffer.alloc(64).toString('base64url'),
].join('.')

type Keys = Parameters<typeof readIdTokenHint>[0]
type MessageContext = Parameters<typeof readIdTokenHint>[3]
const answering = (tag: string) => ({ verificationKey: async () => ({ tag }) }) as unknown as Keys
const read = (tag: string) => readIdTokenHint(answering(tag), ISSUER, HINT, {} as MessageContext)

test('without verification keys the hint is a retryable error, not a defect of the service', async (t) => {
  await t.throwsAsync(read('keys_unavailable'), { instanceOf: DependencyUnavailable })
})

test('a hint signed with an unknown key is refused', async (t) => {
  t.is(await read('unknown'), null)
})
