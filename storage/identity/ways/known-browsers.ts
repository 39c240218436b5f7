/** Browsers and networks where an account has signed in. Global, so every transaction here crosses tenants. */
import type { Email } from '../../../actors/domain/email.js'
import { changedRows, execute, firstRow, type Transaction } from '../../platform/sql.js'
import { removing } from '../../platform/portable/expiry.js'
import { keysIn } from '../email-keys.js'

type Familiarity = {
  readonly browserKnown: boolean
  readonly networkKnown: boolean
  /** The account has signed in to any tenant, has a session or has accepted an invitation before. */
  readonly hasSignedIn: boolean
  readonly email: Email
  /** The address is verified, so a code by mail reaches the person. */
  readonly emailVerified: boolean
}

/** What is known about a browser and its network, for an account. */
export const findFamiliarity = (
  tx: Transaction,
  accountId: string,
  browserSha256: Uint8Array,
  network: string,
  since: Date,
) =>
  firstRow<Familiarity>(tx, {
    name: 'known_browser.find',
    text: `select exists (select from known_browsers b where b.account_id = a.id
               and b.browser_sha256 = $2 and b.last_seen_at >= $4) as "browserKnown",
             exists (select from known_browsers b where b.account_id = a.id
               and b.network = $3 and b.last_seen_at >= $4) as "networkKnown",
             exists (select from tenant_users u where u.account_id = a.id and (u.last_login_at is not null
                 or u.status = 'active' and not u.fixture))
               or exists (select from browser_sessions s where s.account_id = a.id and not s.pending)
               as "hasSignedIn",
             a.email, a.email_verified as "emailVerified"
           from accounts a where a.id = $1`,
    values: [accountId, Buffer.from(browserSha256), network, since],
  })

/** Whether an account of the address has signed in with the browser. The same work for an unknown address. */
export async function isKnownBrowser(
  tx: Transaction,
  tenantId: string,
  email: Email,
  browserSha256: Uint8Array,
  since: Date,
): Promise<boolean> {
  const row = await firstRow<{ known: boolean }>(tx, {
    name: 'known_browser.of_address',
    text: `select exists (select from accounts a join known_browsers b on b.account_id = a.id
             where a.email_key in ${keysIn('$2', '$1')} and b.browser_sha256 = $3
               and b.last_seen_at >= $4) as known`,
    values: [tenantId, email, Buffer.from(browserSha256), since],
  })
  return row!.known
}

/** Records a complete sign-in of an account. */
export const rememberBrowser = (
  tx: Transaction,
  accountId: string,
  browserSha256: Uint8Array,
  network: string,
  now: Date,
) =>
  execute(tx, {
    name: 'known_browser.remember',
    text: `insert into known_browsers (account_id, browser_sha256, network, first_seen_at, last_seen_at)
           values ($1, $2, $3, $4, $4)
           on conflict (account_id, browser_sha256, network) do update
             set last_seen_at = greatest(known_browsers.last_seen_at, excluded.last_seen_at)`,
    values: [accountId, Buffer.from(browserSha256), network, now],
  })

/** Marks a browser as asked to create a passkey. False when it was asked after `since`, or is not known. */
export const claimPasskeyQuestion = async (
  tx: Transaction,
  accountId: string,
  browserSha256: Uint8Array,
  since: Date,
  now: Date,
): Promise<boolean> => {
  const asked = await changedRows(tx, {
    name: 'known_browser.claim_passkey_question',
    text: `update known_browsers b set passkey_asked_at = $4
           where b.account_id = $1 and b.browser_sha256 = $2
             and (b.passkey_asked_at is null or b.passkey_asked_at <= $3)
             and not exists (select from known_browsers o where o.account_id = $1
               and o.browser_sha256 = $2 and o.passkey_asked_at > $3)`,
    values: [accountId, Buffer.from(browserSha256), since, now],
  })
  return asked > 0
}

/** Removes up to `limit` entries that were last seen before `before`. */
export const removeOldBrowsers = removing(
  'known_browser.remove_old',
  'known_browsers',
  'last_seen_at',
  '(account_id, browser_sha256, network)',
)
