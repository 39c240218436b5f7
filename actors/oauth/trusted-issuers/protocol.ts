/** Messages for issuers that a tenant trusts. See docs/guides/oauth/workload-identity.md. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type {
  EntityProtocol,
  MemberInvalid,
  OneRow,
  RowUnknown,
} from '../../domain/entities/messages.js'
import type { Rule, RuleDraft, TrustedIssuerMembers } from '../../domain/entities/trusted-issuer.js'
import type { EventRefused } from '../../domain/webhooks/signals.js'
import type { ActingParty } from '../../domain/principal.js'
import type { AudienceRefused } from '../resources/api-resources/protocol.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../domain/idempotency.js'

export type TrustedIssuersProtocol = EntityProtocol<TrustedIssuerMembers, IssuerRefused> & {
  listTrustedIssuerRules: Ask<OneRow, RulesListed | RowUnknown>
  createTrustedIssuerRule: Ask<
    {
      readonly caller: Caller
      readonly issuerId: string
      readonly draft: RuleDraft & { readonly position: number | null }
      readonly idempotency: IdempotencyClaim | null
    },
    RuleCreated | RuleRefused | RowUnknown | IdempotencyRefused
  >
  deleteTrustedIssuerRule: Ask<
    OneRow & { readonly ruleId: string },
    { readonly tag: 'removed' } | RowUnknown
  >
  /** Finds the user for whom an identity assertion speaks. Links the subject the first time, and uses up the `jti`. */
  admitIdentityAssertion: Ask<AdmitIdentityAssertion, PersonAdmitted | NotAdmitted>
  /** Records the token that an assertion gave, so that a sign-out at the issuer ends it. Not after a sign-out. */
  recordAssertedToken: Ask<AssertedToken, { readonly tag: 'recorded' } | SignedOut>
  /** A logout token of an issuer ends the tokens that its assertions gave. It works once. */
  endAssertedTokens: Ask<
    { readonly issuerId: string; readonly token: string },
    { readonly tag: 'logged_out' } | LogoutRefused
  >
  /** A security event of an issuer ends the tokens that its assertions gave. One that was received before changes nothing. */
  receiveIssuerEvent: Ask<
    { readonly issuerId: string; readonly token: string },
    { readonly tag: 'received' } | EventRefused | { readonly tag: 'unavailable' }
  >
  /** What would happen to a token. Issues nothing, and does not use up its `jti`. */
  evaluateTrustedIssuerToken: Ask<OneRow & { readonly token: string }, Evaluated | RowUnknown>
  /** Finds the application for which a token of a trusted issuer stands. Uses up its `jti`. */
  admitAssertion: Ask<AdmitAssertion, Admitted | NotAdmitted>
}

/** The caller lacks scopes of the application that a rule names. */
export type RuleForbidden = { readonly tag: 'forbidden'; readonly scopes: readonly string[] }

/** `conflict` too if the tenant trusts the issuer for this purpose. */
export type IssuerRefused = RuleForbidden | AudienceRefused

export type RulesListed = {
  readonly tag: 'listed'
  readonly rules: readonly Rule[]
}
export type RuleCreated = {
  readonly tag: 'created'
  readonly rule: Rule
  readonly replayed: boolean
}
export type RuleRefused =
  | MemberInvalid
  | RuleForbidden
  | { readonly tag: 'full'; readonly most: number }
  /** No condition pins what the issuer never gives to another workload. */
  | { readonly tag: 'not_pinned'; readonly claim: string }
  /** The target is no active application of the tenant. */
  | { readonly tag: 'target_unknown' }
  /** The target does not have this scope. */
  | { readonly tag: 'scope_unknown'; readonly scope: string }

/** The steps of validation, in their order. */
export const STEPS = [
  'size',
  'parse',
  'algorithm',
  'issuer',
  'purpose',
  'key',
  'signature',
  'exp',
  'nbf',
  'iat',
  'aud',
  'jti',
  'rule',
  'target',
  'scope',
] as const
export type Step = (typeof STEPS)[number]
export type StepFailed = { readonly step: Step; readonly detail: string }

export type Evaluated = {
  readonly tag: 'evaluated'
  /** Null if no rule matches, and for an identity assertion. */
  readonly ruleId: string | null
  /** Empty: the token is accepted. */
  readonly failed: readonly StepFailed[]
}

export type AdmitAssertion = {
  readonly tenantId: string
  readonly assertion: string
  /** `spiffe`: presented as the jwt-spiffe type. Null accepts every kind. */
  readonly presentedAs: 'spiffe' | null
}
export type Admitted = {
  readonly tag: 'admitted'
  readonly issuerId: string
  readonly ruleId: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
  readonly maxLifetimeSecs: number | null
  /** When the assertion expires. */
  readonly expiresAtSecs: number
}
export type AdmitIdentityAssertion = {
  readonly tenantId: string
  readonly assertion: string
  /** The authenticated client, as issuers know it. */
  readonly clientId: string
  /** Key thumbprint of the DPoP proof. Null without one. */
  readonly jkt: string | null
  /** Network address of the request. */
  readonly address: string
}
/** What an identity assertion grants. */
export type Asserted = {
  readonly scopes: readonly string[]
  /** Empty if the assertion names none. */
  readonly resources: readonly string[]
  readonly level: number
  readonly amr: readonly string[]
  readonly authTimeSecs: number | null
  /** Actors that its issuer knows. */
  readonly actors: readonly ActingParty[]
}
/** For whom an issuer spoke, and when. */
export type AssertedSubject = {
  readonly tenantId: string
  readonly issuerId: string
  /** The `sub` at the issuer. */
  readonly sub: string
  /** The tenant of the issuer. Null without one. */
  readonly tenant: string | null
  readonly issuedAtSecs: number
}
export type AssertedToken = {
  readonly asserted: AssertedSubject
  /** The `sub` of the user here. */
  readonly subject: string
  readonly clientId: string
  readonly tokenId: string
  readonly expiresAt: Date
}
export type PersonAdmitted = Asserted & {
  readonly tag: 'person_admitted'
  /** The `sub` of the user in the tenant. */
  readonly subject: string
  readonly issuer: string
  readonly assertedBy: AssertedSubject
  /** The client sent the assertion before. */
  readonly repeated: boolean
}
export type SignedOut = { readonly tag: 'signed_out' }
export type LogoutRefused = { readonly tag: 'refused'; readonly detail: string }
export type NotAdmitted = { readonly tag: 'not_admitted'; readonly step: Step }

export const trustedIssuers = address<TrustedIssuersProtocol>('trusted-issuers', {
  idempotent: ['list', 'read', 'listTrustedIssuerRules', 'evaluateTrustedIssuerToken'],
})
