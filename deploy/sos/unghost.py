# For sos (https://github.com/sosreport/sos): copy into its directory of plugins, such as
# /usr/lib/python3/dist-packages/sos/report/plugins/. It collects what `unghost` shows; nothing is changed on the node.

from sos.report.plugins import DebianPlugin, IndependentPlugin, Plugin, RedHatPlugin, SuSEPlugin, UbuntuPlugin


# sos 4.0, which Debian 12 has, does not load a plugin that is independent alone.
class Unghost(Plugin, IndependentPlugin, RedHatPlugin, SuSEPlugin, DebianPlugin, UbuntuPlugin):

    short_desc = 'Ghost pod sandboxes of Kubernetes'

    plugin_name = 'unghost'
    profiles = ('container', 'kubernetes')
    files = ('/usr/local/bin/unghost', '/usr/bin/unghost')
    commands = ('unghost',)

    def setup(self):
        self.add_cmd_output([
            'unghost version -o json',
            'unghost doctor -o json',
            'unghost scan -v',
            'unghost scan -o json',
            'unghost history',
            'unghost config',
        ])
        # The same scan for `unghost scan --from`. Secrets are replaced before it is printed. What it writes to stderr would
        # be appended to the archive.
        self.add_cmd_output('unghost bundle -', suggest_filename='unghost-bundle.tar.gz', binary=True, stderr=False)
