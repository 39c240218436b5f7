/** The common first part of every sign-in step: the flow of the page and the session of the browser. */
import { reachOf } from '../../../domain/assurance.js'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  type BrowserSessionRow,
  findBrowserSession,
} from '../../../../storage/identity/browser-sessions.js'
import type { Coordination } from '../../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { accountFactors, type AccountFactors } from '../../../../storage/identity/passkeys.js'
import {
  findFlowPlace,
  findSignInFlow,
  type SignInFlowFound,
} from '../../../../storage/identity/sign-in-flows.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { beginFlow, isOwnPath, nextStep, pathOf, type Step } from './flows.js'
import type { FlowReason } from '../sessions/protocol.js'
import type { SessionCookieSettings } from '../sessions/settings.js'
import type { PasswordsProtocol } from '../../passwords/protocol.js'
import type { FederatedLoginProtocol } from '../ways/federated/protocol.js'
import type { TenantsProtocol } from '../../users/tenants/protocol.js'
import { brandingOf, signUpOf } from '../../../domain/tenants/branding.js'
import type { AdaptiveMfa } from '../second-factors/risk.js'
import type { AdaptiveMfaSettings } from '../second-factors/settings.js'
import type { Lockout, LockoutSettings } from '../limits/lockout.js'
import type {
  FactorMethods,
  FlowPage,
  FlowStep,
  FlowUnknown,
  StartLogin,
  StepRedirect,
} from '../protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

export type SignInNeeds = {
  database: Database
  coordination: Pick<Coordination, 'take' | 'get' | 'put'>
  sealer: Sealer
  clock: Clock
  random: Random
  passwords: ActorRef<PasswordsProtocol>
  tenants: ActorRef<TenantsProtocol>
  federatedLogin: ActorRef<FederatedLoginProtocol>
  settings: LockoutSettings
  cookies: Pick<SessionCookieSettings, 'idle_secs' | 'absolute_secs'>
  adaptiveMfa: AdaptiveMfaSettings
  /** `two_factor.enabled`. */
  alwaysTwo: boolean
  /** `passkey.enabled`. */
  passkeys: boolean
}

/** `SignInNeeds` with the lockout and the risk judgement built. */
export type SignInTools = SignInNeeds & {
  readonly lockout: Lockout
  readonly adaptive: AdaptiveMfa
}

/** A browser in a flow. */
export type Progress = {
  readonly flow: SignInFlowFound
  /** The flow token, for the page. */
  readonly token: string
  /** The browser's session, in whichever tenant, which may be pending a second factor. */
  readonly session: BrowserSessionRow | undefined
  /** The factors of that session's account. */
  readonly factors: AccountFactors
  readonly step: Step
}
/** Progress of a browser with a session. */
export type SessionProgress = Progress & { readonly session: BrowserSessionRow }

const NO_FACTORS: AccountFactors = { totp: false, passkey: false, deviceBound: false }

/** Starts the flow of a page without one. Null: there is no such tenant. */
export async function beginAccountFlow(
  {
    database,
    clock,
    random,
    tenants,
    alwaysTwo,
  }: Pick<SignInNeeds, 'database' | 'clock' | 'random' | 'tenants' | 'alwaysTwo'>,
  { tenant: selector, returnTo, uiLocales }: Omit<StartLogin, 'flow' | 'visitor'>,
  context: MessageContext,
): Promise<string | null> {
  const resolved = await tenants.resolve(selector, context)
  if (resolved.tag !== 'resolved' || resolved.tenant.status !== 'active') return null
  const { id: tenantId } = resolved.tenant
  const path = returnTo !== null && isOwnPath(returnTo) ? returnTo : '/auth/account'
  const flow = { returnTo: path, reason: { tag: 'account' }, uiLocales } as const
  const order = { tenantId, demand: { level: alwaysTwo ? 2 : 1 }, flow } as const
  return inTenant(database, tenantId, context, (tx) => beginFlow(tx, order, random, clock.now()))
}

/** Reads the state of a browser in a flow; undefined when the flow does not exist any more. */
export function readProgress(
  { database, clock }: Pick<SignInNeeds, 'database' | 'clock'>,
  flow: string,
  sessionToken: string | null,
  context: MessageContext,
): Promise<Progress | undefined> {
  // Neither token names a tenant: it is read from the rows.
  return database.system(async (tx) => progressOf(tx, flow, sessionToken, clock.now()), context)
}

/** The same for a submitted page. If the flow has expired, the answer names its tenant. */
export async function progressIn(
  tools: Pick<SignInNeeds, 'database' | 'clock'>,
  flow: string,
  sessionToken: string | null,
  context: MessageContext,
): Promise<Progress | FlowUnknown> {
  const progress = await readProgress(tools, flow, sessionToken, context)
  if (progress !== undefined) return progress
  const place = await tools.database.system((tx) => findFlowPlace(tx, sha256(flow)), context)
  const isAbsent = flow === ''
  if (place === undefined) return { tag: 'unknown_flow', isAbsent, tenant: null, uiLocales: null }
  const { tenantId, tenantName, tenantSettings, uiLocales } = place
  return {
    tag: 'unknown_flow',
    isAbsent,
    tenant: brandingOf(tenantId, tenantName, tenantSettings),
    uiLocales,
  }
}

async function progressOf(
  tx: Transaction,
  token: string,
  sessionToken: string | null,
  now: Date,
): Promise<Progress | undefined> {
  const flow = await findSignInFlow(tx, sha256(token), now)
  if (flow === undefined) return undefined
  const session =
    sessionToken === null ? undefined : await findBrowserSession(tx, sha256(sessionToken), now)
  const factors = session === undefined ? NO_FACTORS : await accountFactors(tx, session.accountId)
  const step = stepForOtherUser(flow, session) ?? nextStep(flow, session, reachOf(factors), now)
  return { flow, token, session, factors, step }
}

/** True if the flow requires one user and the session belongs to another. */
export function isOtherUser(
  { tenantId, sub }: Pick<SignInFlowFound, 'tenantId' | 'sub'>,
  session: Pick<BrowserSessionRow, 'tenantId' | 'sub'> | undefined,
): boolean {
  return sub !== null && session?.tenantId === tenantId && session.sub !== sub
}

/** True if the user asked to sign in with another account. */
export function isForAnyone({ reason }: Pick<SignInFlowFound, 'reason'>): boolean {
  const given = reason as FlowReason
  return given.tag === 'application' && given.anyone === true
}

/**
 * If another user signed in, the browser returns to the caller, which reports the mismatch. The sign-in page would ask
 * again without end.
 */
function stepForOtherUser(
  flow: SignInFlowFound,
  session: BrowserSessionRow | undefined,
): Step | null {
  if (session === undefined || !isOtherUser(flow, session) || session.createdAt < flow.createdAt)
    return null
  return session.pending ? 'mfa' : 'done'
}

/** Redirects to the step the browser needs instead of the page it requested. */
export function onward({ step, token, flow }: Progress): StepRedirect {
  return { tag: 'onward', location: pathOf(step, token, flow.returnTo) }
}

/** A browser that is signed in does not see the pages of a first factor, except to sign in as another user. */
export function needsFirstFactor({ step, session }: Progress): boolean {
  return step === 'login' || session?.pending === true
}

/** The page of a first factor, unless the browser needs none. */
export async function firstFactorPage(
  tools: Pick<SignInNeeds, 'database' | 'clock'>,
  { flow, visitor }: FlowStep,
  context: MessageContext,
): Promise<({ readonly tag: 'page' } & FlowPage) | StepRedirect | FlowUnknown> {
  const progress = await progressIn(tools, flow, visitor.token, context)
  if ('tag' in progress) return progress
  if (!needsFirstFactor(progress)) return onward(progress)
  return { tag: 'page', ...flowPage(flow, progress.flow) }
}

/** The session of a browser at a step of the second factor. At another step the browser goes onward. */
export async function sessionAt(
  tools: Pick<SignInNeeds, 'database' | 'clock'>,
  needed: 'mfa' | 'enroll',
  { flow, visitor }: FlowStep,
  context: MessageContext,
): Promise<SessionProgress | StepRedirect | FlowUnknown> {
  const progress = await progressIn(tools, flow, visitor.token, context)
  if ('tag' in progress) return progress
  const { step, session } = progress
  return step === needed && session !== undefined ? { ...progress, session } : onward(progress)
}

export function flowPage(token: string, flow: SignInFlowFound): FlowPage {
  return {
    flow: token,
    tenant: brandingOf(flow.tenantId, flow.tenantName, flow.tenantSettings),
    reason: flow.reason as FlowReason,
    uiLocales: flow.uiLocales,
    formTargets: flow.formTargets,
    signUp: flow.controlPlane ? false : signUpOf(flow.tenantSettings),
  }
}

/** The factors a user can use on the second-factor page. */
export function methodsOf({ factors, flow }: Progress, passkeys: boolean): FactorMethods {
  const deviceBound = flow.level === 3 && factors.deviceBound
  const code = factors.totp ? 'totp' : 'recovery'
  return { code: deviceBound ? null : code, passkey: passkeys && factors.passkey, deviceBound }
}

/** Whether a code by mail confirms the pending session: its account has no factor. */
export function confirmsByMail({ session, factors }: Progress, { enabled }: AdaptiveMfa): boolean {
  return enabled && session?.pending === true && !factors.totp && !factors.passkey
}

/** The factors a user can enrol: those that reach the level of the flow. */
export function offeredMethods({ factors, flow }: Progress, passkeys: boolean): FactorMethods {
  const deviceBound = flow.level === 3
  return { code: deviceBound || factors.totp ? null : 'totp', passkey: passkeys, deviceBound }
}
