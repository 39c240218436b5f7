/** German. */
import { account } from './de/account.js'
import { consoleTexts } from './de/console.js'
import type { Catalogue } from './en.js'

export const de: Catalogue = {
  ...account,
  ...consoleTexts,

  'common.error': 'Es gibt ein Problem',
  'common.error.title': 'Fehler: {title}',
  'common.support': 'Brauchen Sie Hilfe? {contact}',
  'common.continue': 'Weiter',
  'common.tenant': 'Sie melden sich bei {tenant} an,',

  'home.title': 'svc',
  'home.lead':
    'Dies ist ein Identitätsanbieter: Menschen und Software-Agenten melden sich hier an, und Anwendungen prüfen hier, wer sie sind.',
  'home.account': 'Ihr Konto',
  'home.docs': 'API-Dokumentation',
  'home.programs': 'Für Programme',
  'home.issuer': 'Aussteller (issuer)',
  'home.discovery': 'OpenID-Connect-Discovery',
  'home.bootstrap': 'So bekommt ein Agent einen Arbeitsbereich',
  'home.capabilities': 'Was diese Installation kann',
  'error.title': 'Das hat nicht geklappt',
  'error.status': 'Fehler {status}',
  'error.request': 'Wenn Sie um Hilfe bitten, nennen Sie diese Nummer:',
  'error.400': 'Die Anfrage war nicht zu verstehen. Gehen Sie zurück und versuchen Sie es erneut.',
  'error.403':
    'Die Seite war veraltet, oder Sie dürfen das nicht. Öffnen Sie sie neu und wiederholen Sie es.',
  'error.cookies':
    'Ihr Browser hat mit dem Formular kein Cookie dieser Website gesendet, deshalb wurde es nicht angenommen. Öffnen Sie die Seite neu. Kommt diese Meldung wieder, erlauben Sie Cookies für diese Website.',
  'error.404':
    'Unter dieser Adresse gibt es keine Seite. Prüfen Sie, ob die Adresse vollständig ist.',
  'error.405':
    'Diese Adresse lässt sich nicht direkt öffnen: Sie ist ein Schritt einer anderen Seite. Beginnen Sie dort neu, wo Sie herkamen.',
  'error.410': 'Diese Adresse gilt nicht mehr.',
  'error.429':
    'Das waren zu viele Versuche. Warten Sie ein wenig und versuchen Sie es dann erneut.',
  'error.500': 'Bei uns ist etwas fehlgeschlagen. Versuchen Sie es gleich noch einmal.',
  'error.503': 'Der Dienst ist ausgelastet. Versuchen Sie es gleich noch einmal.',
  'error.flow':
    'Diese Anmeldung ist abgelaufen oder existiert nicht. Gehen Sie dorthin zurück, woher Sie kamen, und beginnen Sie neu.',
  'error.again': 'Anmelden',

  'reason.application': 'um bei {name} weiterzumachen',
  'reason.agent': 'um über eine Anfrage des Agenten {name} zu entscheiden',
  'reason.account': 'um Ihr Konto zu sehen',
  'reason.sensitive': 'um den Schutz Ihres Kontos zu ändern',

  'login.title': 'Anmelden',
  'login.again': 'Bitte bestätigen Sie, dass Sie es sind: Melden Sie sich erneut an,',
  'login.email': 'E-Mail-Adresse',
  'login.password': 'Passwort',
  'login.submit': 'Anmelden',
  'login.wrong': 'E-Mail-Adresse und Passwort passen nicht zusammen.',
  'login.locked': 'Zu viele Versuche. Warten Sie {wait} und versuchen Sie es dann erneut.',

  'login.mail.code': 'Code per E-Mail senden',
  'login.mail.link': 'Link per E-Mail senden',
  'login.mail.both': 'Code und Link per E-Mail senden',
  'login.forgot': 'Passwort vergessen?',
  'login.email.invalid': 'Das ist keine E-Mail-Adresse.',
  'captcha.wanted':
    'Bitte bestätigen Sie, dass Sie ein Mensch sind, und senden Sie das Formular erneut.',
  'captcha.working': 'Ihr Browser wird geprüft. Das dauert einige Sekunden.',
  'captcha.done': 'Ihr Browser wurde geprüft.',
  'captcha.script':
    'Diese Prüfung braucht JavaScript. Schalten Sie es für diese Seite ein oder versuchen Sie es später erneut.',
  'error.captcha':
    'Die Prüfung, ob Sie ein Mensch sind, ist gerade nicht möglich. Versuchen Sie es in einigen Minuten noch einmal.',
  'mail.title': 'Sehen Sie in Ihr Postfach',
  'mail.lead':
    'Wenn diese Adresse hier zu einem Konto gehört, ist eine E-Mail unterwegs. Es kann eine Minute dauern; sehen Sie auch im Spam-Ordner nach.',
  'mail.link': 'Öffnen Sie den Link aus der E-Mail in diesem Browser.',
  'mail.code': 'Code aus der E-Mail',
  'mail.code.hint':
    'Acht Buchstaben. Bindestriche, Leerzeichen und Großschreibung spielen keine Rolle.',
  'mail.submit': 'Anmelden',
  'mail.wrong':
    'Dieser Code gilt nicht oder nicht mehr. Prüfen Sie ihn oder fordern Sie eine neue E-Mail an.',
  'mail.other': 'Zurück zur Anmeldung',
  'link.title': 'Anmelden',
  'link.lead': 'Bestätigen Sie, dass Sie sich in diesem Browser bei {tenant} anmelden wollen.',
  'link.submit': 'Anmelden',
  'link.browser.title': 'Ein anderer Browser',
  'link.browser':
    'Dieser Link gilt nur in dem Browser, in dem er angefordert wurde. Öffnen Sie ihn dort oder fordern Sie hier eine neue E-Mail an.',
  'link.gone.title': 'Link gilt nicht mehr',
  'link.gone': 'Dieser Link wurde benutzt oder ist abgelaufen. Fordern Sie einen neuen an.',
  'forgot.title': 'Passwort vergessen?',
  'forgot.lead':
    'Geben Sie Ihre E-Mail-Adresse an. Gehört sie hier zu einem Konto, bekommen Sie einen Link, um ein neues Passwort zu wählen.',
  'forgot.submit': 'Link senden',
  'password.title': 'Neues Passwort wählen',
  'password.lead': 'Dies wird das Passwort von {email}. Sie werden überall abgemeldet.',
  'password.new': 'Neues Passwort',
  'password.submit': 'Passwort speichern',
  'password.done.title': 'Passwort gespeichert',
  'password.done':
    'Ihr neues Passwort ist gesetzt. Sie wurden überall abgemeldet. Melden Sie sich mit dem neuen Passwort an.',
  'password.common': 'Dieses Passwort ist eines der häufigsten. Wählen Sie ein anderes.',
  'password.breached': 'Dieses Passwort ist aus Datendiebstählen bekannt. Wählen Sie ein anderes.',
  'password.change.title': 'Passwort ändern',
  'password.change.lead': 'Sie werden überall sonst abgemeldet.',
  'password.current': 'Jetziges Passwort',
  'password.current.wrong': 'Das ist nicht Ihr jetziges Passwort.',
  'invitation.title': 'Sie sind eingeladen',
  'invitation.lead': 'Sie sind zu {tenant} eingeladen, mit der Adresse {email}.',
  'invitation.until': 'Die Einladung kann einmal angenommen werden, bis {time}.',
  'invitation.known': 'Sie haben schon ein Konto. Nehmen Sie an und melden Sie sich dann damit an.',
  'invitation.submit': 'Einladung annehmen',
  'email.title': 'E-Mail-Adresse bestätigen',
  'email.lead': 'Bestätigen Sie, dass {email} Ihre Adresse ist.',
  'email.submit': 'Adresse bestätigen',
  'email.done.title': 'Adresse bestätigt',
  'email.done': 'Danke. Ihre E-Mail-Adresse ist bestätigt.',
  'email.sent':
    'Eine E-Mail mit einem Link ist unterwegs zu Ihrer Adresse. Öffnen Sie ihn in diesem Browser, solange Sie angemeldet sind.',
  'email.elsewhere.title': 'Melden Sie sich zuerst an',
  'email.elsewhere':
    'Öffnen Sie diesen Link in dem Browser, in dem Sie ihn angefordert haben, solange Sie dort angemeldet sind. Haben Sie ihn nicht angefordert, dann ignorieren Sie die E-Mail: Es wurde nichts geändert.',
  'login.upstreams': 'Ein anderer Weg',
  'login.upstream': 'Weiter mit {name}',

  'sso.away.title': 'Einen Augenblick',
  'sso.away': 'Zur Anmeldung geht es weiter zu {name}.',
  'sso.confirm.title': 'Bei einem anderen Anbieter anmelden?',
  'sso.confirm': 'Weiter zu {provider}, um sich bei {tenant} anzumelden?',
  'sso.confirm.leaves':
    'Sie sind bei {tenant} als {email} angemeldet. Wenn Sie fortfahren, werden Sie dort abgemeldet.',
  'sso.confirm.hint': 'Wollten Sie sich nicht anmelden, dann schließen Sie diese Seite.',
  'sso.confirm.submit': 'Weiter zu {provider}',
  'sso.back.title': 'Einen Augenblick',
  'sso.back': 'Das hat geklappt. Es geht zurück dorthin, wo Sie herkamen.',
  'sso.unknown_state':
    'Diese Antwort des Anbieters wurde schon benutzt, ist abgelaufen oder gehört zu einem anderen Browser. Beginnen Sie die Anmeldung neu.',
  'sso.unknown_provider': 'Mit diesem Anbieter kann man sich hier nicht anmelden.',
  'sso.unavailable':
    'Der Anbieter ist gerade nicht erreichbar. Versuchen Sie es noch einmal oder melden Sie sich anders an.',
  'sso.invalid_answer':
    'Der Anbieter hat eine ungültige Antwort gesendet. Sie sind nicht angemeldet. Wenden Sie sich an Ihren Administrator.',
  'sso.denied': 'Der Anbieter hat Sie nicht angemeldet.',
  'sso.unverified_email':
    'Der Anbieter bestätigt nicht, dass die E-Mail-Adresse Ihre ist. Bestätigen Sie sie dort oder melden Sie sich anders an.',
  'sso.link_first':
    'Zu Ihrer E-Mail-Adresse gibt es schon ein Konto. Melden Sie sich dort so an wie bisher und verbinden Sie den Anbieter auf Ihrer Kontoseite.',
  'sso.not_member':
    'Sie sind hier noch kein Mitglied. Bitten Sie einen Administrator um eine Einladung.',
  'sso.invited':
    'Sie sind hier eingeladen. Öffnen Sie zuerst den Link in der Einladungs-E-Mail und melden Sie sich dann so an.',
  'sso.suspended': 'Ihr Zugang ist gesperrt. Wenden Sie sich an einen Administrator.',
  'sso.identity_taken': 'Diese Anmeldung ist schon mit einem anderen Konto verbunden.',
  'sso.session_gone':
    'Sie wurden abgemeldet. Melden Sie sich wieder an und verbinden Sie dann den Anbieter.',
  'sso.not_fresh':
    'Hier ist eine neue Anmeldung nötig, und der Anbieter hat keine bestätigt. Melden Sie sich anders an.',
  'sso.last_way_in':
    'Dies ist der einzige Weg zu Ihrem Konto. Richten Sie einen anderen ein, bevor Sie ihn entfernen.',

  'mfa.title': 'Zweiter Schritt',
  'mfa.lead': 'Geben Sie die sechs Ziffern ein, die Ihre Authenticator-App jetzt zeigt.',
  'mfa.code': 'Code',
  'mfa.hint':
    'Kein Telefon zur Hand? Geben Sie stattdessen einen Ihrer Wiederherstellungscodes ein.',
  'mfa.submit': 'Bestätigen',
  'mfa.wrong': 'Dieser Code gilt nicht. Jeder Code gilt einmal; warten Sie auf den nächsten.',
  'mfa.other': 'Als jemand anderes anmelden',

  'common.or': 'oder',
  'mfa.recovery': 'Kein Passkey zur Hand? Geben Sie einen Ihrer Wiederherstellungscodes ein.',
  'mfa.recovery.hint': 'Jeder Code gilt einmal.',
  'mfa.passkey.wrong':
    'Dieser Passkey ließ sich nicht verwenden. Versuchen Sie es noch einmal oder auf anderem Weg.',

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
  'invite.sent':
    'Eine E-Mail ist unterwegs an {email}. Öffnen Sie deren Link in diesem Browser, um die Einladung zu {organization} anzunehmen.',
  'invite.letter.lead': 'Sie sind eingeladen, {organization} als {email} zu betreiben.',
  'invite.email.invalid': 'Das ist keine E-Mail-Adresse.',
  'invite.unknown.title': 'Keine solche Einladung',
  'invite.unknown':
    'Unter dieser Adresse gibt es keine Einladung. Prüfen Sie, ob sie vollständig ist.',
  'invite.spent.title': 'Einladung gilt nicht mehr',
  'invite.spent': 'Diese Einladung wurde benutzt oder ist abgelaufen. Bitten Sie um eine neue.',

  'consent.title': 'Zugriff erlauben?',
  'consent.lead': '{name} ({host}) möchte auf Ihr Konto zugreifen.',
  'consent.lead.documented':
    '{host} möchte auf Ihr Konto zugreifen. Diese Anwendung ist hier nicht registriert.',
  'consent.claimed': 'Sie nennt sich selbst {name}.',
  'consent.redirect': 'Danach kehren Sie zu {host} zurück.',
  'consent.first_seen.documented': 'Sie wurde hier am {date} zum ersten Mal gesehen.',
  'consent.resource': 'Es geht um den Zugriff auf {name} ({host}).',
  'consent.loopback':
    'Es läuft auf Ihrem eigenen Rechner. Fahren Sie nur fort, wenn Sie es selbst gestartet haben.',
  'consent.first_seen': 'Es hat sich am {date} selbst registriert. Sein Name ist nicht geprüft.',
  'consent.new': 'Neu',
  'consent.kind.write': 'ändert Daten',
  'consent.kind.money': 'kann Geld ausgeben',
  'consent.as': 'Sie sind als {email} angemeldet.',
  'consent.scopes': 'Damit könnte es',
  'consent.details': 'Im Einzelnen',
  'consent.allow': 'Erlauben',
  'consent.deny': 'Nicht erlauben',
  'consent.later': 'Sie können dies jederzeit auf Ihrer Kontoseite widerrufen.',
  'delegation.title': 'Darf dieser Agent für Sie handeln?',
  'delegation.lead': 'Der Software-Agent {name} möchte in Ihrem Namen handeln.',
  'delegation.compare': 'Er sollte Ihnen diesen Code gezeigt haben:',
  'delegation.about': 'Über diese Anfrage',
  'delegation.agent': 'Agent',
  'delegation.key': 'Schlüssel',
  'delegation.asked': 'Gefragt',
  'delegation.from': '{time}, von der Adresse {address}',
  'delegation.audience': 'Zur Verwendung bei',
  'delegation.audience.own': 'diesem Dienst',
  'delegation.scopes': 'Damit könnte er',
  'delegation.lasts':
    'Es endet {time}, nachdem der Agent es abgeholt hat, oder sobald Sie es beenden.',
  'delegation.since': 'Registriert',
  'delegation.last': 'Von Ihnen zuletzt erlaubt',
  'delegation.last.never': 'Nie, soweit aufgezeichnet',
  'delegation.refused': 'Er fragt auch nach Berechtigungen, die Sie nicht haben',
  'delegation.nothing':
    'Sie haben keine der angefragten Berechtigungen und können dies deshalb nicht erlauben.',
  'delegation.unknown':
    'Erlauben Sie dies nur, wenn Sie es selbst begonnen haben. Hat Ihnen jemand einen Link oder einen Code geschickt, könnte diese Person für Sie handeln.',
  'delegation.approve': 'Dem Agenten erlauben',
  'delegation.deny': 'Nicht erlauben',
  'delegation.approved.title': 'Der Agent darf für Sie handeln',
  'delegation.approved':
    'Sie haben es {name} erlaubt. Sie können dieses Fenster schließen und zu ihm zurückkehren.',
  'delegation.denied.title': 'Nicht erlaubt',
  'delegation.denied':
    'Sie haben {name} nicht erlaubt, für Sie zu handeln. Sie können dieses Fenster schließen.',
  'authorize.refused':
    'Die Anwendung hat Sie mit einer ungültigen Anfrage hierher geschickt. Gehen Sie zu ihr zurück und versuchen Sie es erneut.',
  'authorize.back': 'Zu {name}',
  'authorize.reason': 'Angaben für den Support:',
  'device.title': 'Gerät verbinden',
  'device.lead': 'Geben Sie den Code ein, den das Gerät oder Programm anzeigt.',
  'device.code': 'Code',
  'device.code.hint':
    'Acht Buchstaben, zum Beispiel {example}. Groß- und Kleinschreibung ist egal.',
  'device.continue': 'Weiter',
  'device.unknown':
    'Mit diesem Code wartet kein Gerät. Vielleicht ist er abgelaufen: Sehen Sie noch einmal auf das Gerät.',
  'device.spent': 'Zu viele falsche Codes. Warten Sie {wait} und versuchen Sie es dann erneut.',
  'device.confirm.title': 'Dieses Gerät zulassen?',
  'device.confirm.lead': '{name} auf einem anderen Gerät möchte Zugriff auf Ihr Konto.',
  'device.confirm.code': 'Das Gerät muss genau diesen Code anzeigen:',
  'device.confirm.asked': 'Angefragt {time}, von der Adresse {address}.',
  'device.confirm.warning':
    'Lassen Sie es nur zu, wenn Sie das selbst begonnen haben und das Gerät vor Ihnen ist. Hat Ihnen jemand den Code oder einen Link geschickt, lassen Sie es nicht zu.',
  'device.allow': 'Zulassen',
  'device.deny': 'Nicht zulassen',
  'device.nothing':
    'Sie haben keine der angefragten Berechtigungen, es gibt also nichts zuzulassen.',
  'device.approved.title': 'Gerät verbunden',
  'device.approved': '{name} fährt gleich automatisch fort. Sie können dieses Fenster schließen.',
  'device.denied.title': 'Gerät nicht verbunden',
  'device.denied':
    '{name} erhält keinen Zugriff auf Ihr Konto. Sie können dieses Fenster schließen.',

  'inbox.title': 'Anfragen an Sie',
  'inbox.none': 'Im Moment fragt keine Anwendung bei Ihnen an.',
  'inbox.none.hint':
    'Anfragen von Anwendungen erscheinen hier. Laden Sie diese Seite neu, wenn Sie eine erwarten.',
  'inbox.warning':
    'Erlauben Sie nur, was Sie selbst begonnen haben. Hat jemand Sie gebeten, diese Seite zu öffnen, erlauben Sie nichts.',
  'inbox.lead': '{name} möchte Sie anmelden',
  'inbox.binding': 'Dort, wo Sie begonnen haben, muss genau dies stehen:',
  'inbox.times': 'Gefragt {asked}; endet {until}.',
  'inbox.account': 'Ihr Konto',
  'inbox.back': 'Zu den Anfragen',
  'inbox.approved.title': 'Erlaubt',
  'inbox.approved': '{name} fährt gleich automatisch fort. Sie können dieses Fenster schließen.',
  'inbox.denied.title': 'Nicht erlaubt',
  'inbox.denied':
    '{name} erhält keinen Zugriff auf Ihr Konto. Sie können dieses Fenster schließen.',

  'signedout.title': 'Abgemeldet',
  'signedout.lead': 'Sie sind abgemeldet. Sie können dieses Fenster schließen.',

  'pay.title': 'Bezahlen',
  'pay.link.begin': 'Weiter zur Zahlung',
  'pay.what': 'Sie kaufen',
  'pay.total': 'Summe',
  'pay.every.day': 'täglich',
  'pay.every.week': 'wöchentlich',
  'pay.every.month': 'monatlich',
  'pay.every.year': 'jährlich',
  'pay.every.more': 'alle {stretch}',
  'pay.renews':
    'Diese Zahlung verlängert sich automatisch, bis Sie kündigen. Wir schreiben an {email}.',
  'pay.email': 'E-Mail-Adresse für die Quittung (freiwillig)',
  'pay.email.wrong': 'Das ist keine E-Mail-Adresse.',
  'pay.rail.wrong': 'Diese Zahlungsart gibt es hier nicht.',
  'pay.full':
    'Dieser Shop kann derzeit keine weiteren Zahlungen annehmen. Es wurde nichts abgebucht.',
  'pay.sandbox': 'Das ist eine Sandbox: Es fließt kein Geld. Wählen Sie, was geschieht.',
  'pay.sandbox.succeed': '{total} bezahlen',
  'pay.sandbox.decline': 'Die Zahlung ablehnen lassen',
  'pay.sandbox.dispute': 'Bezahlen und dann anfechten',
  'pay.with': 'Mit {rail} bezahlen',
  'pay.card': 'Mit Karte bezahlen',
  'pay.continue': 'Weiter zur Zahlungsseite',
  'pay.continue.text':
    'Die Zahlung ist noch nicht eingegangen. Wenn Sie bezahlt haben, sehen Sie gleich noch einmal nach. Sonst machen Sie weiter.',
  'pay.none': 'Zurzeit ist keine Zahlungsart verfügbar.',
  'pay.invoices':
    'Für jede Verlängerung sendet der Shop einen Link an {email}. Ohne Ihr Zutun wird nichts abgebucht.',
  'pay.x402.title': 'Aus einer Wallet bezahlen',
  'pay.x402.exactly':
    'Senden Sie genau diesen Betrag in diesem Netz: Am Betrag erkennt der Shop Ihre Zahlung.',
  'pay.x402.amount': 'Betrag',
  'pay.x402.network': 'Netz',
  'pay.x402.to': 'An',
  'pay.x402.asset': 'Token',
  'pay.x402.wallet': 'Wallet öffnen',
  'pay.x402.picture': 'QR-Code der Zahlung, für eine Wallet',
  'pay.x402.sent': 'Ich habe gesendet: noch einmal nachsehen',
  'pay.x402.agents': 'Programme bezahlen mit x402 unter',
  'pay.processing.title': 'Zahlung läuft',
  'pay.processing': 'Die Zahlung wird verarbeitet. Sie brauchen nicht noch einmal zu bezahlen.',
  'pay.look': 'Noch einmal nachsehen',
  'pay.succeeded.title': 'Bezahlt',
  'pay.succeeded': 'Vielen Dank. Die Zahlung ist gelungen.',
  'pay.failed.title': 'Nicht bezahlt',
  'pay.failed': 'Die Zahlung wurde abgelehnt. Es wurde nichts abgebucht.',
  'pay.refunded.title': 'Erstattet',
  'pay.refunded': 'Diese Zahlung wurde ganz oder zum Teil erstattet.',
  'pay.charge': 'Zahlungsnummer:',
  'pay.back': 'Weiter',
  'pay.cancel': 'Zurück, ohne zu bezahlen',
  'pay.ended': 'Diese Zahlungsseite ist abgelaufen. Beginnen Sie dort neu, wo Sie herkamen.',

  'offer.title': 'Ihr Nachweis',
  'offer.lead':
    '{name} bietet Ihnen diesen Nachweis an. Scannen Sie den Code mit Ihrer Wallet, oder öffnen Sie die Wallet auf diesem Gerät.',
  'offer.of.TenantMembership': 'Mitgliedschaft',
  'offer.of.VerifiedEmail': 'Bestätigte E-Mail-Adresse',
  'offer.of.AgentDelegation': 'Vollmacht für einen Software-Agenten',
  'offer.picture': 'QR-Code des Angebots, für eine Wallet',
  'offer.open': 'Wallet öffnen',
  'offer.code':
    'Die Wallet fragt nach einem Code. Sie bekommen ihn auf einem anderen Weg, nicht auf dieser Seite.',
  'offer.short': 'Das Angebot gilt einmal und läuft bald ab.',
  'offer.ended': 'Dieses Angebot ist abgelaufen oder wurde verwendet. Bitten Sie um ein neues.',

  'scope.TenantMembership': 'Einen Nachweis Ihrer Mitgliedschaft und Rollen bekommen',
  'scope.VerifiedEmail': 'Einen Nachweis Ihrer E-Mail-Adresse bekommen',
  'scope.AgentDelegation': 'Einen Nachweis bekommen, was ein Agent für Sie darf',
  'scope.openid': 'Wissen, wer Sie sind',
  'scope.profile': 'Ihren Namen, Ihr Bild, Ihre Sprache und Ihre Zeitzone sehen',
  'scope.email': 'Ihre E-Mail-Adresse sehen',
  'scope.phone': 'Ihre Telefonnummer sehen',
  'scope.offline_access': 'Verbunden bleiben, während Sie abwesend sind',
  'scope.org:read': 'Ihre Organisation sehen',
  'scope.org:manage': 'Ihre Organisation und ihre Mitglieder ändern',
  'scope.org:create': 'Organisationen anlegen',
  'scope.applications:read': 'Die Anwendungen dieses Mandanten sehen',
  'scope.applications:manage': 'Die Anwendungen dieses Mandanten verwalten',
  'scope.users:read': 'Die Personen dieses Mandanten sehen',
  'scope.users:manage': 'Die Personen dieses Mandanten verwalten',
  'scope.webhooks:read': 'Webhooks sehen',
  'scope.webhooks:manage': 'Webhooks verwalten',
  'scope.vault:list': 'Sehen, welche Zugangsdaten im Tresor liegen',
  'scope.vault:read': 'Zugangsdaten des Tresors benutzen',
  'scope.vault:sign': 'SSH-Zertifikate mit Zertifizierungsstellen des Tresors ausstellen',
  'scope.vault:manage': 'Die Zugangsdaten des Tresors verwalten',
  'scope.agents:read': 'Software-Agenten sehen',
  'scope.agents:manage': 'Software-Agenten verwalten',
  'scope.delegations:manage': 'Widerrufen, was Agenten für Sie tun dürfen',
  'scope.tenant:manage': 'Diesen Mandanten verwalten',
  'scope.commerce:read': 'Zahlungen und Preise sehen',
  'scope.commerce:manage': 'Zahlungen und Preise verwalten',
  'scope.audit:read': 'Das Prüfprotokoll lesen',
  'scope.tokens:introspect': 'Token prüfen',
  'scope.credentials:issue': 'Überprüfbare Nachweise ausstellen',
  'scope.metrics:read': 'Die Kennzahlen des Dienstes lesen',
  'scope.signing_keys:manage': 'Die Signaturschlüssel des Dienstes ersetzen',
  'scope.deployment:manage': 'Organisationen, Mandanten und Konten sperren und wieder freigeben',
}
