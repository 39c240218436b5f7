/** English texts of sign-in by phone, wallet and as a guest, and of confirmations. */
export const signInWays = {
  'footer.links': 'Links of {tenant}',

  'ways.other': 'Sign in another way',
  'ways.account': 'Back to your account',
  'ways.phone': 'Continue with phone',

  'ways.ethereum': 'Continue with Ethereum',

  'ways.guest': 'Continue as a guest',

  'confirm.lead':
    'You have not signed in from here before, or someone tried your password. We sent a code to your email address.',
  'confirm.hint': 'From the email. It can take a minute.',
  'confirm.again': 'Email me a new code',

  'guest.name': 'Guest',
  'guest.title': 'Keep your account',
  'guest.lead': 'Add your email address to keep this account. We send you a code.',
  'guest.send': 'Email me a code',
  'guest.sent': 'We sent a code to {email}. It can take a minute.',
  'guest.prove': 'Keep my account',
  'guest.again': 'Use another address or request a new code',
  'guest.taken': 'You already have an account with this email address. Sign in to it.',
  'guest.section': 'You are a guest',
  'guest.section.lead':
    'You cannot sign in again on another device, and this account ends when you have not used it for a while.',
  'guest.add': 'Add your email address',

  'wallet.title': 'Sign in with Ethereum',
  'wallet.lead':
    'Your wallet asks you to sign a message. This costs nothing and sends no transaction.',
  'wallet.submit': 'Connect wallet',
  'wallet.new.title': 'Link an Ethereum account',
  'wallet.new.lead':
    'You can sign in with this account afterwards. Your wallet asks you to sign a message. This costs nothing and sends no transaction.',
  'wallet.new.submit': 'Connect wallet',
  'wallet.missing': 'This browser has no Ethereum wallet. Install one, or sign in another way.',
  'wallet.cancelled': 'You declined in your wallet. Try again when you are ready.',
  'wallet.chain':
    'Your wallet is on a network that is not accepted here. Switch the network and try again.',
  'wallet.failed': 'Your wallet did not sign the message. Try again.',
  'wallet.script':
    'Signing in with Ethereum needs JavaScript, because your wallet signs in this browser. Turn it on, or sign in another way.',
  'wallet.wrong': 'The signature is not valid, or the message has expired. Try again.',
  'wallet.unlinked':
    'No account here uses this Ethereum account. Sign in another way, then link it on your account page.',
  'wallet.taken':
    'This Ethereum account is linked to an account already, or you have linked as many as you can.',
  'wallet.section': 'Ethereum accounts',
  'wallet.none': 'No Ethereum account yet.',
  'wallet.add': 'Link an Ethereum account',

  'phone.title': 'Sign in with your phone',
  'phone.lead': 'We text you a code.',
  'phone.number': 'Phone number',
  'phone.number.hint': 'With the country code, such as +49 30 12345678.',
  'phone.number.invalid': 'Enter a phone number with its country code, such as +49 30 12345678.',
  'phone.number.country': 'We cannot send text messages to this country.',
  'phone.send': 'Text me a code',
  'phone.code.title': 'Enter the code',
  'phone.code.lead':
    'If an account uses this number, a text message is on its way. It can take a minute.',
  'phone.code.sent': 'We sent a code to {number}. It can take a minute.',
  'phone.code': '6-digit code',
  'phone.code.hint': 'From the text message.',
  'phone.code.wrong': 'This code is wrong or no longer valid. Check it, or request a new one.',
  'phone.prove': 'Confirm number',
  'phone.again': 'Use another number or request a new code',
  'phone.own.title': 'Add your phone number',
  'phone.own.lead':
    'You can sign in with a code that we text to this number. If another account uses it, it moves to yours.',
  'phone.section': 'Phone number for sign-in',
  'phone.none': 'No phone number yet.',
  'phone.add': 'Add a phone number',
  'phone.change': 'Change the phone number',
} as const
