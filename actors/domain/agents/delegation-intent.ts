/** What a delegation is for: stated by the agent, seen by the person, and repeated in tokens and audit events. */
import { z } from 'zod'
import { sha256 } from '../secret-hashes.js'

/** The `delegation` claim of tokens, and the same member of the data of events. Members have their wire names. */
export const DelegationIntent = z
  .object({
    id: z.string(),
    purpose_hash: z.string().nullable().meta({
      description: 'SHA-256 of the purpose in UTF-8, base64url. Null if the agent stated none.',
    }),
    policy_hash: z.string().meta({
      description: 'SHA-256, base64url, of the RFC 8785 form of what the delegation permits.',
    }),
  })
  .meta({ id: 'DelegationIntent' })
export type DelegationIntent = Readonly<z.infer<typeof DelegationIntent>>

/** A delegation as stored. */
export type DelegationFacts = {
  readonly id: string
  readonly purpose: string | null
  readonly scopes: readonly string[]
  readonly audience: string
  /** A text comes from JSON of the database. */
  readonly expiresAt: Date | string
}

/** SHA-256 as base64url over the purpose in UTF-8, and over the RFC 8785 form of what the delegation permits. */
export function delegationIntent(facts: DelegationFacts): DelegationIntent {
  const { id, purpose, scopes, audience, expiresAt } = facts
  // The members are in the order of RFC 8785. Grants have limits, delegations have none.
  const policy = { audience, expires_at: new Date(expiresAt).toISOString(), limits: {}, scopes }
  return {
    id,
    purpose_hash: purpose === null ? null : base64url(purpose),
    policy_hash: base64url(JSON.stringify(policy)),
  }
}

const base64url = (text: string) => sha256(text).toString('base64url')

const PURPOSE = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]{1,500}$/u

/** The form in which a purpose is shown, stored and hashed. */
export const purposeForm = (text: string) => text.normalize('NFC').trim().replaceAll(/\s+/gu, ' ')

/** True for 1 to 500 characters, some of them visible, without control characters and marks of direction. */
export function isPurpose(text: string): boolean {
  return PURPOSE.test(text) && text.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '') !== ''
}
