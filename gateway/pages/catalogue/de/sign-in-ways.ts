/** German texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'footer.links': 'Links von {tenant}',

  'ways.other': 'Anders anmelden',
  'ways.account': 'Zurück zu Ihrem Konto',
  'ways.phone': 'Weiter mit Telefon',

  'ways.ethereum': 'Weiter mit Ethereum',

  'ways.guest': 'Als Gast fortfahren',

  'confirm.lead':
    'Sie haben sich von hier noch nicht angemeldet, oder jemand hat Ihr Passwort probiert. Wir haben einen Code an Ihre E-Mail-Adresse gesendet.',
  'confirm.hint': 'Aus der E-Mail. Sie kann eine Minute brauchen.',
  'confirm.again': 'Neuen Code per E-Mail senden',

  'guest.name': 'Gast',
  'guest.title': 'Konto behalten',
  'guest.lead':
    'Geben Sie Ihre E-Mail-Adresse an, um dieses Konto zu behalten. Wir senden Ihnen einen Code.',
  'guest.send': 'Code per E-Mail senden',
  'guest.sent': 'Wir haben einen Code an {email} gesendet. Das kann eine Minute dauern.',
  'guest.prove': 'Konto behalten',
  'guest.again': 'Andere Adresse verwenden oder neuen Code anfordern',
  'guest.taken': 'Sie haben bereits ein Konto mit dieser E-Mail-Adresse. Melden Sie sich dort an.',
  'guest.section': 'Sie sind Gast',
  'guest.section.lead':
    'Sie können sich auf keinem anderen Gerät anmelden, und dieses Konto endet, wenn Sie es eine Weile nicht verwenden.',
  'guest.add': 'E-Mail-Adresse angeben',

  'wallet.title': 'Mit Ethereum anmelden',
  'wallet.lead':
    'Ihre Wallet bittet Sie, eine Nachricht zu signieren. Das kostet nichts und sendet keine Transaktion.',
  'wallet.submit': 'Wallet verbinden',
  'wallet.new.title': 'Ethereum-Konto verknüpfen',
  'wallet.new.lead':
    'Danach können Sie sich mit diesem Konto anmelden. Ihre Wallet bittet Sie, eine Nachricht zu signieren. Das kostet nichts und sendet keine Transaktion.',
  'wallet.new.submit': 'Wallet verbinden',
  'wallet.missing':
    'Dieser Browser hat keine Ethereum-Wallet. Installieren Sie eine, oder melden Sie sich anders an.',
  'wallet.cancelled':
    'Sie haben in Ihrer Wallet abgelehnt. Versuchen Sie es erneut, wenn Sie möchten.',
  'wallet.chain':
    'Ihre Wallet verwendet ein Netzwerk, das hier nicht akzeptiert wird. Wechseln Sie das Netzwerk, und versuchen Sie es erneut.',
  'wallet.failed': 'Ihre Wallet hat die Nachricht nicht signiert. Versuchen Sie es erneut.',
  'wallet.script':
    'Die Anmeldung mit Ethereum braucht JavaScript, weil Ihre Wallet in diesem Browser signiert. Schalten Sie es ein, oder melden Sie sich anders an.',
  'wallet.wrong':
    'Die Signatur ist ungültig, oder die Nachricht ist abgelaufen. Versuchen Sie es erneut.',
  'wallet.unlinked':
    'Kein Konto hier verwendet dieses Ethereum-Konto. Melden Sie sich anders an, und verknüpfen Sie es dann auf Ihrer Kontoseite.',
  'wallet.taken':
    'Dieses Ethereum-Konto ist bereits mit einem Konto verknüpft, oder Sie haben die Höchstzahl verknüpft.',
  'wallet.section': 'Ethereum-Konten',
  'wallet.none': 'Noch kein Ethereum-Konto.',
  'wallet.add': 'Ethereum-Konto verknüpfen',

  'phone.title': 'Mit dem Telefon anmelden',
  'phone.lead': 'Wir senden Ihnen einen Code per SMS.',
  'phone.number': 'Telefonnummer',
  'phone.number.hint': 'Mit Ländervorwahl, zum Beispiel +49 30 12345678.',
  'phone.number.invalid':
    'Geben Sie eine Telefonnummer mit Ländervorwahl ein, zum Beispiel +49 30 12345678.',
  'phone.number.country': 'In dieses Land können wir keine SMS senden.',
  'phone.send': 'Code per SMS senden',
  'phone.code.title': 'Code eingeben',
  'phone.code.lead':
    'Wenn ein Konto diese Nummer verwendet, ist eine SMS unterwegs. Das kann eine Minute dauern.',
  'phone.code.sent': 'Wir haben einen Code an {number} gesendet. Das kann eine Minute dauern.',
  'phone.code': '6-stelliger Code',
  'phone.code.hint': 'Aus der SMS.',
  'phone.code.wrong':
    'Dieser Code ist falsch oder nicht mehr gültig. Prüfen Sie ihn, oder fordern Sie einen neuen an.',
  'phone.prove': 'Nummer bestätigen',
  'phone.again': 'Andere Nummer verwenden oder neuen Code anfordern',
  'phone.own.title': 'Telefonnummer hinzufügen',
  'phone.own.lead':
    'Sie können sich mit einem Code anmelden, den wir an diese Nummer senden. Verwendet ein anderes Konto die Nummer, geht sie an Ihres über.',
  'phone.section': 'Telefonnummer für die Anmeldung',
  'phone.none': 'Noch keine Telefonnummer.',
  'phone.add': 'Telefonnummer hinzufügen',
  'phone.change': 'Telefonnummer ändern',
}
