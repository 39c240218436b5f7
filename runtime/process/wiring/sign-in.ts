/** Sign-in and recovery. */
import { browserSessions } from '../../../actors/identity/sign-in/sessions/protocol.js'
import { passwordRecoveryActor } from '../../../actors/identity/sign-in/recovery/actor.js'
import { signInActor } from '../../../actors/identity/sign-in/actor.js'
import { login } from '../../../actors/identity/sign-in/protocol.js'
import { guestsActor } from '../../../actors/identity/sign-in/ways/guest/actor.js'
import { siweActor } from '../../../actors/identity/sign-in/ways/ethereum/actor.js'
import { phoneActor } from '../../../actors/identity/sign-in/ways/phone/actor.js'
import { passkeysActor } from '../../../actors/identity/sign-in/ways/passkey/actor.js'
import { webauthn } from '../../../actors/identity/sign-in/ways/passkey/library.js'
import { relyingParty } from '../../../actors/identity/sign-in/ways/passkey/settings.js'
import { passwords } from '../../../actors/identity/passwords/protocol.js'
import { federatedLogin } from '../../../actors/identity/sign-in/ways/federated/protocol.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import { textSenderOf } from './mail.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function signInWirings(shared: SharedNeeds): readonly ActorWiring[] {
  const {
    resources,
    settings,
    coordination,
    sealer,
    auth,
    issuer,
    alwaysTwo,
    registry,
    offers,
    captcha,
    gate,
    mailQueue,
    common,
  } = shared
  const way = {
    ...common,
    coordination,
    settings: auth,
    cookies: settings.session_cookie,
    mail: mailQueue,
    email: settings.email,
    adaptiveMfa: settings.adaptive_mfa,
    registry,
  }
  return [
    wireActor(signInActor, ({ ref, onStop }) => {
      onStop(async () => captcha?.close())
      return {
        ...way,
        sealer,
        passwords: ref(passwords),
        tenants: ref(tenants),
        browserSessions: ref(browserSessions),
        federatedLogin: ref(federatedLogin),
        alwaysTwo,
        passkeys: settings.passkey.enabled,
        emailOtp: settings.email_otp,
        magicLink: settings.magic_link,
        issuer,
        consolePath: settings.console.enabled ? '/console' : null,
        offers,
        gate,
      }
    }),
    wireActor(passkeysActor, async ({ ref }) => {
      if (settings.deployment.thread_start === 'at_start') await webauthn()
      return {
        ...way,
        login: ref(login),
        browserSessions: ref(browserSessions),
        federatedLogin: ref(federatedLogin),
        passkeys: settings.passkey.enabled,
        relyingParty: relyingParty(settings.passkey, issuer),
        offers,
      }
    }),
    wireActor(phoneActor, ({ ref, onStop }) => {
      const sender = textSenderOf(resources)
      onStop(() => sender.close())
      return {
        ...way,
        tenants: ref(tenants),
        browserSessions: ref(browserSessions),
        sms: settings.sms,
        i18n: settings.i18n,
        sender,
        issuer,
      }
    }),
    wireActor(guestsActor, () => ({ ...way, anonymous: settings.anonymous })),
    wireActor(siweActor, ({ ref }) => ({
      ...way,
      tenants: ref(tenants),
      browserSessions: ref(browserSessions),
      siwe: settings.siwe,
      issuer,
    })),
    wireActor(passwordRecoveryActor, ({ ref }) => ({
      ...way,
      browserSessions: ref(browserSessions),
      passwords: ref(passwords),
      tenants: ref(tenants),
      gate,
      selfService: settings.user_self_service,
      alwaysTwo,
      issuer,
    })),
  ]
}
