/**
 * A passkey signs a statement, such as the approval of a delegation: the challenge is the SHA-256 of its text. The caller sees
 * to it that a statement is used once.
 */
import type { Handler, MessageContext } from '../../../../../runtime/kernel/actor.js'
import { findAccountSignIn } from '../../../../../storage/identity/sign-ins.js'
import {
  listPasskeys,
  type PasskeyRow,
  spendPasskeyCounter,
} from '../../../../../storage/identity/passkeys.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { personEvent } from '../../../../platform/people/person-events.js'
import type { CountsOutcomes } from '../../../../platform/metrics.js'
import type { WriteNeeds } from '../../../../platform/write-needs.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import { described } from './ceremonies.js'
import { base64url, readAsserting, verifySignature } from './credential.js'
import { webauthn } from './library.js'
import { COPIED } from './proof.js'
import type { RelyingParty } from './settings.js'

type SigningTools = CountsOutcomes &
  WriteNeeds & {
    /** Null: `passkey.enabled` is false. */
    readonly relyingParty: RelyingParty | null
  }
type SigningHandler<K extends 'getStatementOptions' | 'signStatement'> = Handler<
  SigningTools,
  BrowserSessionsProtocol,
  K
>

export const getStatementOptions: SigningHandler<'getStatementOptions'> = async (
  tools,
  { accountId, statement },
  context,
) => {
  const { relyingParty } = tools
  const allowed = await signers(tools, accountId, context)
  if (relyingParty === null || allowed.length === 0) return { tag: 'no_passkey' }
  const { generateAuthenticationOptions } = await webauthn()
  const options = await generateAuthenticationOptions({
    rpID: relyingParty.id,
    challenge: new Uint8Array(sha256(statement)),
    timeout: relyingParty.ceremonySecs * 1000,
    userVerification: 'required',
    allowCredentials: allowed.map(described),
  })
  return { tag: 'options', options }
}

export const signStatement: SigningHandler<'signStatement'> = async (
  tools,
  { tenantId, accountId, statement, credential },
  context,
) => {
  const { database, clock, random, relyingParty } = tools
  const allowed = await signers(tools, accountId, context)
  if (relyingParty === null || allowed.length === 0) return { tag: 'no_passkey' }
  const asserting = readAsserting(credential)
  const passkey = allowed.find(({ credentialId }) => base64url(credentialId) === asserting?.id)
  if (asserting === null || passkey === undefined) return { tag: 'wrong' }
  const challenge = base64url(sha256(statement))
  const signed = await verifySignature(relyingParty, passkey, asserting, challenge)
  if (signed === null) return { tag: 'wrong' }
  const now = clock.now()
  const isOriginal = await database.system(async (tx) => {
    if (await spendPasskeyCounter(tx, passkey, signed, now)) return true
    const person = await findAccountSignIn(tx, tenantId, accountId)
    const copied = { ...COPIED, tenantId, sub: person?.sub ?? null, requestId: context.requestId }
    appendEvents(tx, [personEvent(random, copied, now)])
    return false
  }, context)
  if (!isOriginal) return { tag: 'wrong' }
  const { authenticatorData, clientDataJSON, signature } = asserting.response
  return {
    tag: 'signed',
    signed: {
      statement,
      credentialId: passkey.credentialId,
      publicKey: passkey.publicKey,
      authenticatorData: Buffer.from(authenticatorData, 'base64url'),
      clientDataJson: Buffer.from(clientDataJSON, 'base64url'),
      signature: Buffer.from(signature, 'base64url'),
    },
  }
}

/** The passkeys of an account that sign: each proved user verification before. */
async function signers(
  { database }: Pick<SigningTools, 'database'>,
  accountId: string,
  context: MessageContext,
): Promise<PasskeyRow[]> {
  const all = await database.system((tx) => listPasskeys(tx, accountId), context)
  return all.filter(({ userVerified }) => userVerified)
}
