/** English. Its keys are the keys of every catalogue. `{name}` is a placeholder. */
export const en = {
  'mail.greeting': 'Hello,',
  'mail.ignore': 'If this was not you, you can ignore this message: nothing will change.',
  'mail.link.once': 'The link works once, until {time}.',
  'mail.link.copy': 'If the button does not work, copy this address into your browser:',
  'mail.sender': 'This message was sent on behalf of {tenant}.',

  'sign_in.subject': 'Sign in to {tenant}',
  'sign_in.lead': 'Someone, most likely you, wants to sign in to {tenant} with this address.',
  'sign_in.code': 'Enter this code on the page where you requested it:',
  'sign_in.code.until': 'The code works once, until {time}. Do not share it with anyone.',
  'sign_in.link': 'Open this link in the browser where you requested it, and confirm there:',
  'sign_in.button': 'Sign in',

  'password_reset.subject': 'Set a new password for {tenant}',
  'password_reset.lead':
    'Someone, most likely you, forgot the password for {tenant}. Choose a new one here:',
  'password_reset.button': 'Choose a new password',

  'password_changed.subject': 'Your password was changed',
  'password_changed.lead':
    'The password of your account at {tenant} was changed on {time}. You were signed out everywhere else.',
  'password_changed.alarm':
    'If this was not you, reset your password at once and tell the administrator of {tenant}.',

  'account_recovery.subject': 'Account recovery at {tenant}',
  'account_recovery.lead':
    'An operator of the service issued a link on {time} that sets a new password for the account {account} at {tenant} and removes its second factors.',
  'account_recovery.alarm': 'If you do not know why, ask the operator of the service at once.',

  'admin_password_reset.subject': 'Your password for {tenant} was reset',
  'admin_password_reset.lead':
    'An administrator of {tenant} reset your password. The old one no longer works, and you were signed out. Choose a new one here:',
  'admin_factors_reset.subject': 'Your second factors for {tenant} were removed',
  'admin_factors_reset.lead':
    'An administrator of {tenant} removed your passkeys, your authenticator app and your recovery codes on {time}. You were signed out. You can set up new ones at the next sign-in.',
  'admin_factors_reset.password': 'No other way to sign in is left. Choose a password here:',
  'admin_reset_refused.subject': 'Your account at {tenant} was not changed',
  'admin_reset_refused.lead':
    'An administrator of {tenant} tried on {time} to reset the password or the second factors of your account. Nothing was changed, because you use the account elsewhere too. You can change both yourself on your account page.',
  'admin_reset.alarm': 'If you do not know why, ask the administrator of {tenant}.',

  'invitation.subject': 'You are invited to {tenant}',
  'invitation.lead': 'You are invited to {tenant}. Accept the invitation here:',
  'invitation.button': 'Accept the invitation',

  'email_verification.subject': 'Confirm your email address for {tenant}',
  'email_verification.lead': 'Confirm that this is your email address:',
  'email_verification.button': 'Confirm the address',

  'sign_up.subject': 'Confirm your address for {tenant}',
  'sign_up.lead': 'Confirm your address to finish your account at {tenant}:',
  'sign_up.button': 'Finish your account',

  'sign_up_known.subject': 'You already have an account at {tenant}',
  'sign_up_known.lead':
    'You tried to sign up at {tenant} with this address, but you already have an account. Sign in here:',
  'sign_up_known.button': 'Sign in',

  'confirmation_code.subject': 'Your code for {tenant}',
  'confirmation_code.lead': 'Enter this code on the page where you requested it:',

  'text.code': '{code} is your code for {tenant}. Do not share it with anyone.',
} as const

export type MailKey = keyof typeof en
/** A catalogue with a missing key does not compile. */
export type MailCatalogue = Readonly<Record<MailKey, string>>
