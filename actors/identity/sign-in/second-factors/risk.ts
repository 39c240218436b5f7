/**
 * Judges the risk of a sign-in, and confirms a risky one with a code by mail (docs/reference/identity.md, "Adaptive
 * second factor").
 */
import type { Email } from '../../../domain/email.js'
import ipaddr from 'ipaddr.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { insertCodeTicket, spendCode } from '../../../../storage/identity/ways/code-tickets.js'
import {
  findFamiliarity,
  isKnownBrowser,
  rememberBrowser,
} from '../../../../storage/identity/ways/known-browsers.js'
import { CoordinationUnavailable } from '../../../../storage/platform/coordination/port.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { SignInFlowFound } from '../../../../storage/identity/sign-in-flows.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { newUserCode, readUserCode, showUserCode } from '../../../domain/user-code.js'
import type { MailQueue } from '../../../platform/mail/mail-queue.js'
import { codeSha256, sha256 } from '../../../domain/secret-hashes.js'
import type { MailQuota } from '../limits/mail-quota.js'
import type { Visitor } from '../protocol.js'
import { type AdaptiveMfaSettings, KNOWN_DAYS } from './settings.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const PURPOSE = 'risk'
const CODE = 'svc-risk-code-v1'
const DAY_MS = 86_400_000
const IPV4_BITS = 24
const IPV6_BITS = 48

type RiskReason = 'new_device' | 'new_network' | 'failures'

type Risk = {
  readonly reasons: readonly RiskReason[]
  /** A code by mail can confirm the sign-in. */
  readonly isConfirmable: boolean
}

type Visit = Pick<Visitor, 'address' | 'browserId'>

export interface AdaptiveMfa {
  readonly enabled: boolean
  /** @param failures of the name before this attempt. */
  judge(
    tx: Transaction,
    accountId: string,
    visit: Visit,
    failures: number,
    now: Date,
  ): Promise<Risk>
  /** Records a sign-in that its second factor completes. `openSession` records all others. */
  remember(tx: Transaction, accountId: string, visit: Visit, now: Date): Promise<void>
  /** Sends a code for a pending session to the address of its account. `locked`: too many were requested. */
  send(
    order: {
      readonly flow: SignInFlowFound
      readonly accountId: string
      readonly email: Email | ''
      /** Token of the pending session. */
      readonly token: string
      readonly visitor: Visitor
    },
    context: MessageContext,
  ): Promise<{ readonly tag: 'sent' } | { readonly tag: 'locked'; readonly retryAfterSecs: number }>
  /** Uses the code of a pending session. False when it is wrong. */
  spend(
    tx: Transaction,
    accountId: string,
    token: string,
    typed: string,
    now: Date,
  ): Promise<boolean>
}

const NO_RISK: Risk = { reasons: [], isConfirmable: false }

type AdaptiveMfaNeeds = WriteNeeds & {
  readonly mail: MailQueue
  readonly adaptiveMfa: AdaptiveMfaSettings
}

export function adaptiveMfa(needs: AdaptiveMfaNeeds, mailQuota: MailQuota): AdaptiveMfa {
  const { database, clock, random, mail, adaptiveMfa: settings } = needs
  const { enabled } = settings

  return {
    enabled,

    async judge(tx, accountId, visit, failures, now) {
      if (!enabled) return NO_RISK
      const network = networkOf(visit.address)
      const browser = sha256(visit.browserId)
      const known = await findFamiliarity(tx, accountId, browser, network, knownSince(now))
      if (known === undefined) return NO_RISK
      const reasons: RiskReason[] = []
      // Everything is new at the first sign-in of an account.
      if (known.hasSignedIn) {
        if (settings.new_device && !known.browserKnown) reasons.push('new_device')
        if (settings.new_network && !known.networkKnown) reasons.push('new_network')
      }
      if (failures >= settings.failures_max) reasons.push('failures')
      return { reasons, isConfirmable: known.emailVerified }
    },

    remember: rememberVisit,

    async send({ flow, accountId, email, token, visitor }, context) {
      const { tenantId, tenantName, tenantSettings, uiLocales } = flow
      try {
        const quota = await mailQuota.ask(`${tenantId}:${email.toLowerCase()}`, visitor.address)
        if (quota.tag === 'locked') return quota
      } catch (error) {
        // The page offers another code.
        if (error instanceof CoordinationUnavailable) return { tag: 'locked', retryAfterSecs: 1 }
        throw error
      }
      const { name, color, locale } = brandingOf(tenantId, tenantName, tenantSettings)
      const now = clock.now()
      const expiresAt = new Date(now.getTime() + settings.code_ttl_secs * 1000)
      const code = newUserCode((count) => random.bytes(count))
      const { languages } = visitor
      const sealed = await mail.seal({
        tenantId,
        // Only a verified address confirms, and a guest has none.
        to: email as Email,
        known: true,
        content: { kind: 'confirmation_code', code: showUserCode(code), until: expiresAt },
        header: { tenant: name, color, locale, uiLocales, languages },
        expiresAt,
      })
      await inTenant(database, tenantId, context, async (tx) => {
        await insertCodeTicket(tx, {
          tenantId,
          id: random.uuid(),
          purpose: PURPOSE,
          accountId,
          target: email.toLowerCase(),
          codeSha256: codeSha256(CODE, token, code),
          placeSha256: sha256(token),
          attempts: settings.code_max_attempts,
          createdAt: now,
          expiresAt,
        })
        await mail.queue(tx, sealed)
      })
      return { tag: 'sent' }
    },

    async spend(tx, accountId, token, typed, now) {
      const code = readUserCode(typed)
      if (code === null) return false
      const spent = await spendCode(tx, PURPOSE, sha256(token), codeSha256(CODE, token, code), now)
      return spent?.accountId === accountId
    },
  }
}

/** Records a complete sign-in: its browser and network are known from now on. */
export const rememberVisit = (
  tx: Transaction,
  accountId: string,
  { browserId, address }: Visit,
  now: Date,
): Promise<void> => rememberBrowser(tx, accountId, sha256(browserId), networkOf(address), now)

/** What the attempts of a browser for an address are counted by, where strangers have used up what they share. */
export const browserName = (email: string, { browserId }: Pick<Visit, 'browserId'>): string =>
  `${email.toLowerCase()}:${Buffer.from(sha256(browserId)).toString('base64url')}`

/** `browserName`. Null unless the account of the address signed in with the browser before. */
export async function knownBrowserName(
  { database, clock }: Pick<AdaptiveMfaNeeds, 'database' | 'clock'>,
  tenantId: string,
  email: Email,
  visit: Pick<Visit, 'browserId'>,
  context: MessageContext,
): Promise<string | null> {
  const browser = sha256(visit.browserId)
  const since = knownSince(clock.now())
  const isKnown = await database.system(
    (tx) => isKnownBrowser(tx, tenantId, email, browser, since),
    context,
  )
  return isKnown ? browserName(email, visit) : null
}

const knownSince = (now: Date) => new Date(now.getTime() - KNOWN_DAYS * DAY_MS)

/** The network of an address: the /24 of IPv4, the /48 of IPv6. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address.slice(0, 64) || 'unknown'
  const parsed = ipaddr.process(address)
  const bits = parsed.kind() === 'ipv4' ? IPV4_BITS : IPV6_BITS
  const bytes = parsed.toByteArray().map((byte, at) => (at * 8 < bits ? byte : 0))
  return `${ipaddr.fromByteArray(bytes).toString()}/${bits}`
}
