/** German. */
import type { Catalogue } from './en.js'

export const de: Catalogue = {
  'common.error': 'Es gibt ein Problem',
  'common.continue': 'Weiter',
  'common.service': 'Sicher angemeldet durch {tenant}',
  'common.tenant': 'Sie melden sich bei {tenant} an',

  'error.title': 'Das hat nicht geklappt',
  'error.status': 'Fehler {status}',
  'error.request': 'Wenn Sie um Hilfe bitten, nennen Sie diese Nummer:',
  'error.400': 'Die Anfrage war nicht zu verstehen. Gehen Sie zurück und versuchen Sie es erneut.',
  'error.403':
    'Die Seite war veraltet, oder Sie dürfen das nicht. Öffnen Sie sie neu und wiederholen Sie es.',
  'error.404': 'Unter dieser Adresse gibt es nichts. Prüfen Sie, ob sie vollständig ist.',
  'error.410': 'Diese Adresse gilt nicht mehr.',
  'error.429':
    'Das waren zu viele Versuche. Warten Sie ein wenig und versuchen Sie es dann erneut.',
  'error.500': 'Bei uns ist etwas fehlgeschlagen. Versuchen Sie es gleich noch einmal.',
  'error.503': 'Der Dienst ist ausgelastet. Versuchen Sie es gleich noch einmal.',
  'error.flow':
    'Diese Anmeldung ist abgelaufen oder wurde nie begonnen. Gehen Sie dorthin zurück, woher Sie kamen, und beginnen Sie neu.',
  'error.again': 'Anmelden',

  'reason.application': 'um bei {name} weiterzumachen',
  'reason.agent': 'um über eine Anfrage des Agenten {name} zu entscheiden',
  'reason.account': 'um Ihr Konto zu sehen',
  'reason.sensitive': 'um den Schutz Ihres Kontos zu ändern',

  'login.title': 'Anmelden',
  'login.again': 'Bitte bestätigen Sie, dass Sie es sind: Melden Sie sich erneut an',
  'login.email': 'E-Mail-Adresse',
  'login.password': 'Passwort',
  'login.submit': 'Anmelden',
  'login.wrong': 'E-Mail-Adresse und Passwort passen nicht zusammen.',
  'login.locked':
    'Zu viele Versuche. Warten Sie {minutes} Minuten und versuchen Sie es dann erneut.',

  'mfa.title': 'Zweiter Schritt',
  'mfa.lead': 'Geben Sie die sechs Ziffern ein, die Ihre Authenticator-App jetzt zeigt.',
  'mfa.code': 'Code',
  'mfa.hint':
    'Kein Telefon zur Hand? Geben Sie stattdessen einen Ihrer Wiederherstellungscodes ein.',
  'mfa.submit': 'Bestätigen',
  'mfa.wrong': 'Dieser Code gilt nicht. Jeder Code gilt einmal; warten Sie auf den nächsten.',
  'mfa.other': 'Als jemand anderes anmelden',

  'enroll.title': 'Schützen Sie Ihr Konto mit einem zweiten Schritt',
  'enroll.lead': 'Was Sie vorhaben, braucht neben dem Passwort einen zweiten Schritt.',
  'enroll.scan': 'Scannen Sie dieses Bild mit einer Authenticator-App.',
  'enroll.picture': 'QR-Code mit dem Geheimnis für Ihre Authenticator-App',
  'enroll.manual': 'Oder geben Sie dieses Geheimnis von Hand in die App ein:',
  'enroll.open': 'Schon auf diesem Gerät? Öffnen Sie Ihre Authenticator-App',
  'enroll.code': 'Code, den die App zeigt',
  'enroll.submit': 'Bestätigen und einschalten',
  'enroll.wrong':
    'Dieser Code gilt nicht. Prüfen Sie die Uhr Ihres Geräts und nehmen Sie den nächsten.',

  'codes.title': 'Bewahren Sie Ihre Wiederherstellungscodes auf',
  'codes.lead':
    'Mit jedem dieser Codes melden Sie sich einmal an, falls Sie Ihr Telefon verlieren. Sie werden nur dieses eine Mal gezeigt: Drucken Sie sie aus oder legen Sie sie in einen Passwortspeicher.',
  'codes.continue': 'Ich habe sie aufbewahrt, weiter',

  'account.title': 'Ihr Konto',
  'account.tenant': 'bei {tenant}',
  'account.sessions': 'Wo Sie angemeldet sind',
  'account.session.this': 'Dieser Browser',
  'account.session.other': 'Ein anderer Browser',
  'account.session.since': 'seit {time}',
  'account.session.seen': 'zuletzt gesehen {time}',
  'account.session.end': 'Dort abmelden',
  'account.session.address': 'Adresse {address}',
  'account.factors': 'Zweiter Schritt',
  'account.factor.totp': 'Authenticator-App',
  'account.factor.enrolled': 'eingerichtet {time}',
  'account.factor.used': 'zuletzt benutzt {time}',
  'account.factor.remove': 'Entfernen',
  'account.factor.none': 'Sie haben keinen zweiten Schritt eingerichtet.',
  'account.factor.add': 'Zweiten Schritt einrichten',
  'account.factor.codes': 'Übrige Wiederherstellungscodes: {count}',
  'account.signout': 'Abmelden',

  'logout.title': 'Sie sind abgemeldet',
  'logout.lead': 'Ihre Sitzung in diesem Browser ist beendet.',

  'invite.title': 'Betreiber werden',
  'invite.lead':
    'Sie sind eingeladen, {organization} zu betreiben. Legen Sie Ihr Konto an, um anzunehmen.',
  'invite.until': 'Die Einladung gilt einmal, bis {time}.',
  'invite.name': 'Ihr Name',
  'invite.email': 'E-Mail-Adresse',
  'invite.password': 'Wählen Sie ein Passwort',
  'invite.password.hint': 'Mindestens 12 Zeichen. Ein Satz merkt sich leichter als ein Rätsel.',
  'invite.submit': 'Konto anlegen',
  'invite.weak': 'Das Passwort braucht 12 bis 256 Zeichen und darf nicht Ihre E-Mail-Adresse sein.',
  'invite.taken': 'Zu dieser E-Mail-Adresse gibt es schon ein Konto. Nehmen Sie eine andere.',
  'invite.email.invalid': 'Das ist keine E-Mail-Adresse.',
  'invite.unknown.title': 'Keine solche Einladung',
  'invite.unknown':
    'Unter dieser Adresse gibt es keine Einladung. Prüfen Sie, ob sie vollständig ist.',
  'invite.spent.title': 'Einladung gilt nicht mehr',
  'invite.spent': 'Diese Einladung wurde benutzt oder ist abgelaufen. Bitten Sie um eine neue.',
}
