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
