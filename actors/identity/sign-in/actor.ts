/** Sign-in: assembles the handlers of its steps. */
import type { Registry } from 'prom-client'
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { findBrowserSession } from '../../../storage/identity/browser-sessions.js'
import { findTenantWithSettings } from '../../../storage/identity/tenants.js'
import { sha256 } from '../sessions/flows.js'
import { adaptiveMfa } from '../adaptive-mfa/risk.js'
import type { CaptchaGate } from '../abuse-protection/gate.js'
import { browserSessions, type BrowserSessionsProtocol } from '../sessions/protocol.js'
import { passwords } from '../passwords/protocol.js'
import { federatedLogin } from '../federated-login/protocol.js'
import { tenants } from '../tenants/protocol.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { SignInNeeds } from './flow.js'
import { byMailStep, type ByMailTools } from './by-mail.js'
import { mailQuota, type MailQuotaSettings } from './mail-quota.js'
import { inviteSteps } from './invite.js'
import { lockout } from './lockout.js'
import { signInMetrics, type SignInStep } from './metrics.js'
import { passwordStep } from './password.js'
import { login, type SignInProtocol } from './protocol.js'
import { secondFactorStep } from './second-factor.js'

export type SignInActorNeeds = SignInNeeds & {
  readonly registry: Registry
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly email: MailQuotaSettings
  readonly gate: CaptchaGate
} & Pick<ByMailTools, 'mail' | 'offers' | 'emailOtp' | 'magicLink' | 'issuer' | 'consolePath'>

export const signInActor = defineActor<SignInProtocol, SignInActorNeeds>({
  address: login,
  asks: { passwords, tenants, browserSessions, federatedLogin },
  mailbox: { capacity: 1024, inflightMax: 256 },
  lane: {
    // One at a time, so that concurrent requests for one invite do not each hash a password.
    acceptOperatorInvite: ({ token }) => token,
    acceptOperatorInviteLetter: ({ token }) => token,
  },
  create: (needs) => {
    const { database, clock, coordination, settings, registry } = needs
    const quota = mailQuota(coordination, needs.email)
    const tools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      mailQuota: quota,
      adaptive: adaptiveMfa(needs, quota),
    }
    const mailed = byMailStep(tools)
    const invited = inviteSteps(tools)
    const first = passwordStep(tools)
    const second = secondFactorStep(tools)
    const metrics = signInMetrics(registry)
    /** Wraps a form handler and counts its outcome. */
    const counted =
      <Message, Reply extends { readonly tag: string }>(
        step: SignInStep,
        handle: (message: Message, context: MessageContext) => Promise<Reply>,
      ) =>
      async (message: Message, context: MessageContext): Promise<Reply> => {
        const reply = await handle(message, context)
        metrics.count(step, reply.tag)
        return reply
      }

    return {
      showSignIn: first.showSignIn,
      signIn: counted('password', first.signIn),
      requestSignInMail: counted('mail', mailed.requestSignInMail),
      showSignInMail: mailed.showSignInMail,
      signInWithMailCode: counted('mail_code', mailed.signInWithMailCode),
      showMagicLink: mailed.showMagicLink,
      signInWithMagicLink: counted('mail_link', mailed.signInWithMagicLink),
      showSecondFactor: second.showSecondFactor,
      giveSecondFactor: counted('second_factor', second.giveSecondFactor),
      requestConfirmationMail: second.requestConfirmationMail,
      showEnrolment: second.showEnrolment,
      enrolSecondFactor: counted('enrolment', second.enrolSecondFactor),
      acceptOperatorInvite: counted('invite', invited.acceptOperatorInvite),
      readOperatorInviteLetter: invited.readOperatorInviteLetter,
      acceptOperatorInviteLetter: counted('invite', invited.acceptOperatorInviteLetter),
      async signOut({ token }, context) {
        if (token === null) return { tag: 'signed_out', tenant: null }
        // A session with a pending second factor is ended too.
        const found = await database.system(async (tx) => {
          const row = await findBrowserSession(tx, sha256(token), clock.now())
          return row && { row, tenant: await findTenantWithSettings(tx, row.tenantId) }
        }, context)
        if (found === undefined) return { tag: 'signed_out', tenant: null }
        const { row, tenant } = found
        const session = { tenantId: row.tenantId, id: row.id }
        await needs.browserSessions.end({ session, reason: 'logout' }, context)
        const branding =
          tenant === undefined ? null : brandingOf(tenant.id, tenant.name, tenant.settings)
        return { tag: 'signed_out', tenant: branding }
      },
    }
  },
})
