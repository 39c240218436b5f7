/** Registration of a passkey: options, verification, storage. */
import type { Clock } from '../../../../../runtime/kernel/clock.js'
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import type { Random } from '../../../../../runtime/kernel/random.js'
import { insertPasskey, listPasskeys } from '../../../../../storage/identity/passkeys.js'
import { countRecoveryCodes } from '../../../../../storage/identity/second-factors.js'
import type { Transaction } from '../../../../../storage/platform/sql.js'
import { renewRecoveryCodes } from '../../second-factors/recovery-codes.js'
import type { PasskeyTools } from './needs.js'
import type { WantedPasskey } from './ceremonies.js'
import { challengeOf, type NewCredential, readCreating, verifyCreation } from './credential.js'
import type { Owner } from './signals.js'

const NAME_LENGTH_MAX = 60
const UNNAMED = 'Passkey'

/** The account that registers the passkey, and its session. */
type Registrant = Owner & {
  readonly tenantId: string
  readonly id: string
  /** Default: `registration`. */
  readonly purpose?: 'registration' | 'conditional'
}

const bound = ({ tenantId, id, purpose = 'registration' }: Registrant, browser: string) => ({
  tenantId,
  purpose,
  sessionId: id,
  browser,
})

export async function creationOptions(
  { database, ceremonies }: PasskeyTools,
  who: Registrant,
  browser: string,
  wanted: WantedPasskey,
  context: MessageContext,
): Promise<object> {
  // Accounts and their passkeys are global.
  const known = await database.system((tx) => listPasskeys(tx, who.accountId), context)
  return ceremonies.create(bound(who, browser), who, known, wanted, context)
}

/** The new credential; null when the response is invalid or its challenge is not ours. */
export async function createdPasskey(
  { ceremonies, relyingParty }: PasskeyTools,
  who: Registrant,
  browser: string,
  credential: string,
  context: MessageContext,
): Promise<NewCredential | null> {
  const creating = readCreating(credential)
  const challenge = creating && challengeOf(creating)
  if (creating === null || challenge === null) return null
  if (!(await ceremonies.spend(bound(who, browser), challenge, context))) return null
  return verifyCreation(relyingParty, creating, challenge, who.purpose === 'conditional')
}

/** The name of a passkey as typed by the user. */
export function passkeyName(typed: string): string {
  // Control and format characters are invisible and change text direction.
  const visible = typed.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').trim()
  const name = [...visible].slice(0, NAME_LENGTH_MAX).join('')
  return name === '' ? UNNAMED : name
}

/**
 * Stores a passkey, with new recovery codes if the account has none. Null when the credential is already registered or
 * the account has too many. Otherwise the new codes, possibly none: a passkey that is no factor yet comes without.
 */
export async function storePasskey(
  tx: Transaction,
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  { accountId }: Pick<Owner, 'accountId'>,
  created: NewCredential,
  name: string,
): Promise<string[] | null> {
  const now = clock.now()
  const row = { ...created, accountId, id: random.uuid(), name: passkeyName(name), createdAt: now }
  if (!(await insertPasskey(tx, row))) return null
  return created.userVerified ? codesFor(tx, random, accountId, now) : []
}

/** The recovery codes that come with the first factor of an account. Empty: it has codes. */
export async function codesFor(
  tx: Transaction,
  random: Random,
  accountId: string,
  now: Date,
): Promise<string[]> {
  const hasCodes = (await countRecoveryCodes(tx, accountId)) > 0
  return hasCodes ? [] : renewRecoveryCodes(tx, random, accountId, now)
}
