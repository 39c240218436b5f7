/** The ways to sign in that the deployment, the tenant and the flow offer. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { SignInFlowFound } from '../../../../storage/identity/sign-in-flows.js'
import { anonymousOf } from '../../../domain/tenants/branding.js'
import { flowPage, type Progress, type SignInNeeds } from '../flow/progress.js'
import type { LoginShown, SignInOffers } from '../protocol.js'
import type { FlowReason } from '../sessions/protocol.js'
import { hasPhone, type PhoneSettings } from './phone/settings.js'

type Switch = { readonly enabled: boolean }

/** The sign-in methods offered in addition to a password. */
export function signInOffers(settings: {
  readonly passkey: Switch
  readonly email_otp: Switch
  readonly magic_link: Switch
  readonly user_self_service: Switch & { readonly sign_up_default: boolean }
  readonly phone: Pick<PhoneSettings, 'enabled' | 'provider'>
  readonly sms: Switch
  readonly siwe: Switch
  readonly anonymous: Switch
}): SignInOffers {
  return {
    passkey: settings.passkey.enabled,
    code: settings.email_otp.enabled,
    link: settings.magic_link.enabled,
    reset: settings.user_self_service.enabled,
    signUp: settings.user_self_service.enabled && settings.user_self_service.sign_up_default,
    phone: hasPhone(settings.phone) && settings.sms.enabled,
    ethereum: settings.siwe.enabled,
    guest: settings.anonymous.enabled,
  }
}

/** Whether a guest may meet this sign-in: the tenant has guests, and neither a level nor a user is required. */
export function admitsGuest({
  tenantSettings,
  level,
  sub,
  reason,
}: Pick<SignInFlowFound, 'tenantSettings' | 'level' | 'sub' | 'reason'>): boolean {
  const { tag } = reason as FlowReason
  return anonymousOf(tenantSettings) && level === 1 && sub === null && tag !== 'sensitive'
}

/** The sign-in page of a flow, with every way in that it offers. */
export async function loginShown(
  tools: Pick<SignInNeeds, 'federatedLogin'> & { readonly offers: SignInOffers },
  { flow, token }: Progress,
  email: string,
  context: MessageContext,
): Promise<LoginShown> {
  const { tenantId, tenantSettings } = flow
  const { upstreams } = await tools.federatedLogin.offered({ tenantId, tenantSettings }, context)
  const offers = { ...tools.offers, guest: tools.offers.guest && admitsGuest(flow) }
  return { ...flowPage(token, flow), email, again: false, offers, upstreams, captcha: null }
}
